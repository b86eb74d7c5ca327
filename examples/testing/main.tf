terraform {
  required_providers {
    rabbitmq = {
      source  = "rabbitmq-retry/rabbitmq"
      version = "~> 0.1"
    }
  }
}

# RABBITMQ_ENDPOINT, RABBITMQ_USERNAME and RABBITMQ_PASSWORD are those of an administrator.
provider "rabbitmq" {}

variable "vhost" {
  description = "Virtual host that test runs copy. No message is ever published there."
  type        = string
  default     = "template"
}

resource "rabbitmq_vhost" "template" {
  name = var.vhost
}

resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  vhost  = rabbitmq_vhost.template.name
  delays = ["100ms", "200ms"] # short, so that a test sees three attempts in less than a second

  work_queues = {
    "orders.created" = { declare = true }
  }

  timeouts = { update = "1m" } # a change of delays leaves no old queue for the export
}

output "worker_config" {
  description = "Configuration of `rabbitmq-retry worker` for the template."
  value       = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] })
}
