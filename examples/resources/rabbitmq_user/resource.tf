variable "password" {
  type      = string
  ephemeral = true
}

resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  delays = ["5s", "1m"]
}

resource "rabbitmq_user" "worker" {
  name                = "retry"
  password_wo         = var.password
  password_wo_version = 1
  permissions         = { "/" = rabbitmq_retry_pipeline.orders.worker_permissions }
}
