output "worker_config" {
  description = "Configuration of `rabbitmq-retry worker`. It contains no secrets."
  value       = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] })
}

output "failed_queue_name" {
  description = "The failed queue: messages that are not retried any more."
  value       = rabbitmq_retry_pipeline.orders.failed_queue_name
}
