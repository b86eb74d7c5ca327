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

variable "vhost" {
  description = "Virtual host of the delayed exchange and of the queues that are bound to it."
  type        = string
  default     = "/"
}

# Publishers publish to "reminders", with the header x-delay in milliseconds.
# Consumers bind their queues to "reminders.deliver", with ordinary keys.
resource "rabbitmq_delayed_exchange" "reminders" {
  name      = "reminders"
  vhost     = var.vhost
  type      = "topic"
  max_delay = "720h" # 30 days
  precision = "100ms"
}

# terraform output -raw worker_config > worker.json
# rabbitmq-retry worker --config worker.json
output "worker_config" {
  description = "Configuration of `rabbitmq-retry worker`. It contains no secrets."
  value       = jsonencode({ delayed_exchanges = [rabbitmq_delayed_exchange.reminders.worker] })
}

output "deliver_exchange" {
  description = "What the queues of consumers are bound to."
  value       = rabbitmq_delayed_exchange.reminders.deliver_exchange
}

output "publisher_permissions" {
  description = "All that a publisher needs. Give it no more: see the guide \"Delayed delivery\"."
  value       = rabbitmq_delayed_exchange.reminders.publisher_permissions
}
