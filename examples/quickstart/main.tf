terraform {
  required_providers {
    rabbitmq = {
      source  = "rabbitmq-retry/rabbitmq"
      version = "~> 0.1"
    }
  }
}

# Endpoint and credentials come from RABBITMQ_ENDPOINT, RABBITMQ_USERNAME and RABBITMQ_PASSWORD.
provider "rabbitmq" {}

resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  vhost  = var.vhost
  delays = var.delays

  work_queues = {
    "orders.created" = {} # a quorum queue that exists already
  }
}
