resource "rabbitmq_topic_permissions" "shop" {
  user = "shop"

  permissions {
    exchange = "orders"
    write    = "^order\\."
    read     = ".*"
  }
}
