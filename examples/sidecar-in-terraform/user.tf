variable "password" {
  description = "Password of the sidecar. Neither plan nor state contains it."
  type        = string
  ephemeral   = true
}

# The least-privileged user of the sidecar.
resource "rabbitmq_user" "worker" {
  name                = "retry"
  password_wo         = var.password
  password_wo_version = 1 # increase it to send another password
  permissions         = { (rabbitmq_retry_pipeline.orders.vhost) = rabbitmq_retry_pipeline.orders.worker_permissions }
}
