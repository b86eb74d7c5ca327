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
