resource "rabbitmq_exchange" "orders" {
  name = "orders"
  type = "topic"
}

resource "rabbitmq_queue" "created" {
  name = "orders.created"
}

resource "rabbitmq_binding" "created" {
  source      = rabbitmq_exchange.orders.name
  destination = rabbitmq_queue.created.name
  routing_key = "order.created"
}
