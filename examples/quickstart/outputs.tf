# terraform output -raw worker_config > worker.json
output "worker_config" {
  description = "Configuration of `rabbitmq-retry worker`. It contains no secrets."
  value       = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] })
}
