resource "rabbitmq_queue" "created" {
  name = "orders.created"
  arguments = {
    x-max-length = 100000
    x-overflow   = "reject-publish"
  }
}
