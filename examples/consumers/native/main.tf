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
  engine       = "native"
  delays       = ["10s", "20s", "30s"]
  max_attempts = 6 # waits 10s, 20s, 30s, 30s, 30s
  work_queues  = { "orders.created" = { declare = true } }
}
