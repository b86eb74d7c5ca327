terraform {
  required_providers {
    rabbitmq = {
      source  = "rabbitmq-retry/rabbitmq"
      version = "~> 0.1"
    }
  }
}

provider "rabbitmq" {}

locals {
  # A pipeline per team: what differs is the schedule. Queues with the same schedule share one.
  pipelines = {
    payments = {
      delays = ["2s", "10s", "1m", "10m"]
      queues = ["payments.captured", "payments.refunded"]
    }
    mails = {
      delays = ["1m", "1h"]
      queues = ["mails.welcome"]
    }
  }
}

resource "rabbitmq_retry_pipeline" "this" {
  for_each = local.pipelines

  name        = each.key
  delays      = each.value.delays
  work_queues = { for queue in each.value.queues : queue => {} }
}

# One sidecar can serve all of them.
output "worker_config" {
  value = jsonencode({ pipelines = [for p in rabbitmq_retry_pipeline.this : p.worker] })
}

output "gives_up_after" {
  value = { for name, p in rabbitmq_retry_pipeline.this : name => p.gives_up_after }
}
