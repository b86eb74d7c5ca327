resource "rabbitmq_permissions" "shop" {
  user      = "shop"
  configure = "^$"
  write     = "^orders$"
  read      = "^orders\\."
}
