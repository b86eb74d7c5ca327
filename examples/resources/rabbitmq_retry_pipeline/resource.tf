resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  delays = ["5s", "30s", "5m"] # before attempts 2, 3 and 4

  work_queues = {
    "orders.created" = { declare = true } # the pipeline creates and owns the queue
  }
}

# terraform output -raw worker_config > worker.json
# rabbitmq-retry worker --config worker.json
output "worker_config" {
  value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] })
}
