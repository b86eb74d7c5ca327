resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  delays = ["5s", "1m"]
}

resource "rabbitmq_delayed_exchange" "events" {
  name      = "events"
  max_delay = "24h"
}

# One sidecar serves both, with one user.
output "worker_permissions" {
  value = provider::rabbitmq::merge_permissions(
    rabbitmq_retry_pipeline.orders.worker_permissions,
    rabbitmq_delayed_exchange.events.worker_permissions,
  )
}
