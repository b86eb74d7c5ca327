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
  name        = "orders"
  delays      = ["5s", "30s", "5m"]
  work_queues = { "orders.created" = { declare = true } }
}

# Publishers publish to "reminders" with a delay, which leads to the work queue.
resource "rabbitmq_delayed_exchange" "reminders" {
  name      = "reminders"
  type      = "topic"
  max_delay = "720h" # 30 days
}

resource "rabbitmq_binding" "reminders" {
  source      = rabbitmq_delayed_exchange.reminders.deliver_exchange
  destination = "orders.created"
  routing_key = "orders.created"

  depends_on = [rabbitmq_retry_pipeline.orders]
}

# terraform output -raw worker_config > worker.json
output "worker_config" {
  value = jsonencode({
    pipelines         = [rabbitmq_retry_pipeline.orders.worker]
    delayed_exchanges = [rabbitmq_delayed_exchange.reminders.worker]
  })
}
