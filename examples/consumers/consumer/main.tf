terraform {
  required_providers {
    rabbitmq = {
      source  = "rabbitmq-retry/rabbitmq"
      version = "~> 0.1"
    }
  }
}

provider "rabbitmq" {}

resource "rabbitmq_retry_pipeline" "orders" {
  name         = "orders"
  engine       = "consumer"
  delays       = ["30s"]
  max_attempts = 4
  work_queues  = { "orders.created" = { declare = true } }
}
