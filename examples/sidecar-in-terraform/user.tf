# The least-privileged user of the sidecar.
resource "rabbitmq_user" "worker" {
  provider = broker

  name = "retry"
  # This provider has no write-only password: a password here would be in the state. So the user is created without one,
  # with which the broker allows no login, and gets it afterwards, from the same source as the sidecar:
  #   rabbitmqctl change_password retry
  password = ""
  tags     = []

  lifecycle {
    ignore_changes = [password]
  }
}

resource "rabbitmq_permissions" "worker" {
  provider = broker

  user  = rabbitmq_user.worker.name
  vhost = rabbitmq_retry_pipeline.orders.vhost

  permissions {
    configure = rabbitmq_retry_pipeline.orders.worker_permissions.configure
    write     = rabbitmq_retry_pipeline.orders.worker_permissions.write
    read      = rabbitmq_retry_pipeline.orders.worker_permissions.read
  }
}
