# examples/complete/kubernetes.yaml mounts this. A change reaches the running workers within a minute or so.
resource "kubernetes_config_map_v1" "worker" {
  metadata {
    name      = "rabbitmq-retry"
    namespace = "default"
  }

  data = {
    "worker.json" = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] })
  }
}
