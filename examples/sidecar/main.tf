terraform {
  required_providers {
    rabbitmq = {
      source = "rabbitmq-retry/rabbitmq"
    }
  }
}

# Endpoint and credentials come from RABBITMQ_ENDPOINT, RABBITMQ_USERNAME and RABBITMQ_PASSWORD.
provider "rabbitmq" {}

variable "vhost" {
  description = "Virtual host of the work queue and of the pipeline."
  type        = string
  default     = "/"
}

resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  vhost  = var.vhost
  delays = ["5s", "30s", "5m"]

  work_queues = {
    "orders.created" = {} # a quorum queue that exists already
  }
}

# Every way to run the sidecar mounts this as a file. It contains no secrets.
output "worker_config" {
  value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] })
}

# create-user.sh grants these: the least that the sidecar needs.
output "worker_permissions" {
  value = rabbitmq_retry_pipeline.orders.worker_permissions
}

output "vhost" {
  value = rabbitmq_retry_pipeline.orders.vhost
}
