# Work queues that other resources, or applications, declare.
resource "rabbitmq_queue" "captured" {
  name = "payments.captured"
}

resource "rabbitmq_queue" "mailed" {
  name = "payments.mailed"
  type = "classic"
}

resource "rabbitmq_retry_pipeline" "payments" {
  name         = "payments"
  delays       = ["5s", "30s", "5m"]     # the last one repeats
  max_attempts = 6                       # deliveries, including the first
  max_age      = "24h"                   # from the first failure to the last retry
  retry_on     = ["rejected", "expired"] # also retries messages that expire in a work queue

  work_queues = {
    (rabbitmq_queue.captured.name) = {}
    (rabbitmq_queue.mailed.name)   = { type = "classic", max_attempts = 2 }
    "payments.refunded" = {
      declare        = true
      arguments_json = jsonencode({ x-single-active-consumer = true })
      failed_queue   = { name = "refunds.failed" }
    }
  }
}

# How long a message that always fails stays in the pipeline: 15m35s.
output "gives_up_after" {
  value = rabbitmq_retry_pipeline.payments.gives_up_after
}
