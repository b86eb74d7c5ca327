resource "rabbitmq_queue" "reports" {
  name = "reports"
  type = "classic"
}

# The attachment's policy replaces an organization-wide policy, so it repeats that policy's limit.
# Failed messages go to a queue of the team's own, which the attachment creates.
resource "rabbitmq_retry_attachment" "reports" {
  pipeline               = rabbitmq_retry_pipeline.orders.name
  queue                  = rabbitmq_queue.reports.name
  type                   = "classic"
  policy_definition_json = jsonencode({ max-length = 100000 })
  failed_queue           = { name = "reports.failed" }
}

# The sidecar's configuration, attached queues included.
data "rabbitmq_retry_pipeline" "orders" {
  name = rabbitmq_retry_pipeline.orders.name

  depends_on = [rabbitmq_retry_attachment.invoices, rabbitmq_retry_attachment.reports]
}

output "worker_config" {
  value = jsonencode({ pipelines = [data.rabbitmq_retry_pipeline.orders.worker] })
}
