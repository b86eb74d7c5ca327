resource "rabbitmq_retry_pipeline" "orders" {
  name         = "orders"
  delays       = ["5s", "30s", "5m"] # before attempts 2, 3 and 4; the last one repeats
  max_attempts = 6                   # deliveries in total, the first one included
  max_age      = "24h"               # no message comes back later after its first failure

  work_queues = {
    "orders.created" = {}                   # exists already, a quorum queue
    "orders.legacy"  = { type = "classic" } # exists already, a classic queue
    "orders.mailed"  = { max_attempts = 2 } # retried once
    "orders.paid" = {                       # created and owned by the pipeline
      declare        = true
      arguments_json = jsonencode({ x-single-active-consumer = true })
    }
  }

  # Retry messages that expired in a work queue, too.
  retry_on = ["rejected", "expired"]
}

# `rabbitmq-retry worker --config` reads this.
output "worker_config" {
  value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] })
}

# How long a message that fails every time stays in the pipeline: 15m35s.
output "gives_up_after" {
  value = rabbitmq_retry_pipeline.orders.gives_up_after
}
