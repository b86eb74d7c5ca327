# The least-privileged user of the sidecar.
resource "rabbitmq_user" "worker" {
  provider = broker

  name = "retry"
  # This provider has no write-only password: what stands here is in the state. So the user is created without one,
  # which the broker lets nobody log in with, and gets it afterwards, from where the sidecar gets it, too:
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
