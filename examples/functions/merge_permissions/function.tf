# One user for the sidecar of two pipelines in a vhost.
output "worker_permissions" {
  value = provider::rabbitmq::merge_permissions(
    rabbitmq_retry_pipeline.orders.worker_permissions,
    rabbitmq_retry_pipeline.invoices.worker_permissions,
  )
}
