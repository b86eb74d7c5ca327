# Every way to run the sidecar mounts this as a file. It contains no secrets.
output "worker_config" {
  value = jsonencode({
    pipelines         = values(rabbitmq_retry_pipeline.all)[*].worker
    delayed_exchanges = [rabbitmq_delayed_exchange.later.worker]
  })
}

output "users" {
  value = { for role, user in rabbitmq_user.all : role => user.name }
}
