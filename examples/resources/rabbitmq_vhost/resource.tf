resource "rabbitmq_vhost" "shop" {
  name               = "shop"
  description        = "Orders and payments"
  default_queue_type = "quorum"
  max_queues         = 500
}
