# The platform team's configuration.
resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  delays = ["5s", "30s", "5m"]
}

# The application team's configuration. If it is separate, write pipeline = "orders".
resource "rabbitmq_queue" "invoices" {
  name = "invoices"
}

resource "rabbitmq_retry_attachment" "invoices" {
  pipeline = rabbitmq_retry_pipeline.orders.name
  queue    = rabbitmq_queue.invoices.name
}
