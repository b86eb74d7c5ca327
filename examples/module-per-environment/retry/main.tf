terraform {
  required_providers {
    rabbitmq = {
      source  = "rabbitmq-retry/rabbitmq"
      version = "~> 0.1"
    }
  }
}

resource "rabbitmq_retry_pipeline" "orders" {
  name         = "orders"
  vhost        = var.vhost
  delays       = var.delays
  max_attempts = var.max_attempts
  work_queues  = { for queue in var.queues : queue => {} }
}
