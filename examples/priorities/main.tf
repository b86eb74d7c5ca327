terraform {
  required_providers {
    rabbitmq = {
      source  = "rabbitmq-retry/rabbitmq"
      version = "~> 0.1"
    }
  }
}

provider "rabbitmq" {}

variable "vhost" {
  type    = string
  default = "/"
}

variable "delays" {
  type    = list(string)
  default = ["5s", "1m", "10m"]
}

# A queue per priority: the publisher chooses by routing key, and each queue has consumers of its own. A message comes back
# to the queue that rejected it. This works on every release, with both types of queues.
resource "rabbitmq_retry_pipeline" "emails" {
  name   = "emails"
  vhost  = var.vhost
  delays = var.delays

  work_queues = {
    "emails"     = { declare = true }
    "emails.low" = { declare = true }
  }
}

# One queue that sorts by the messages' own priority. The argument is for classic queues; from RabbitMQ 4.0 on quorum queues
# have priorities without it.
resource "rabbitmq_retry_pipeline" "texts" {
  name   = "texts"
  vhost  = var.vhost
  delays = var.delays

  work_queues = {
    "texts" = {
      type           = "classic"
      declare        = true
      arguments_json = jsonencode({ "x-max-priority" = 9 })
    }
  }
}

# One sidecar serves both.
output "worker_config" {
  value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.emails.worker, rabbitmq_retry_pipeline.texts.worker] })
}
