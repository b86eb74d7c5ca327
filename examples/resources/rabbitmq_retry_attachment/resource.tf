# The pipeline "orders" is owned by another configuration. This one owns the queue only.
resource "rabbitmq_retry_attachment" "invoices" {
  pipeline = "orders"
  queue    = "invoices"
}

# A classic queue with a policy key that it had before from a policy for all queues.
resource "rabbitmq_retry_attachment" "reports" {
  pipeline               = "orders"
  queue                  = "reports"
  type                   = "classic"
  policy_definition_json = jsonencode({ "max-length" = 100000 })
}

# The team's failed messages go to a queue of its own, which the attachment creates.
resource "rabbitmq_retry_attachment" "shipments" {
  pipeline     = "orders"
  queue        = "shipments"
  failed_queue = { name = "shipments.failures" }
}
