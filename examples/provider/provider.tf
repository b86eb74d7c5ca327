terraform {
  required_providers {
    rabbitmq = {
      source  = "rabbitmq-retry/rabbitmq"
      version = "~> 0.1"
    }
  }
}

provider "rabbitmq" {} # reads RABBITMQ_ENDPOINT, RABBITMQ_USERNAME and RABBITMQ_PASSWORD

resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  delays = ["5s", "30s", "5m"] # before attempts 2, 3 and 4

  work_queues = {
    "orders.created" = { declare = true } # {} for a quorum queue that exists already
  }
}

# terraform output -raw worker_config > worker.json
output "worker_config" {
  value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] })
}
