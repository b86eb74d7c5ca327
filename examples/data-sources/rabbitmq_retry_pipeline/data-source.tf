# A team that runs the sidecar of pipelines that others own.
data "rabbitmq_retry_pipeline" "owned_by_others" {
  for_each = toset(["orders", "invoices"])
  name     = each.key
}

locals {
  # The sidecar's configuration file.
  worker_json = jsonencode({
    pipelines = [for p in data.rabbitmq_retry_pipeline.owned_by_others : p.worker]
  })

  # The permissions of its user in the vhost.
  worker_permissions = provider::rabbitmq::merge_permissions(
    [for p in data.rabbitmq_retry_pipeline.owned_by_others : p.worker_permissions]...
  )
}
