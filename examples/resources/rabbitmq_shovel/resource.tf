variable "uris" {
  type      = object({ source = list(string), destination = list(string) })
  ephemeral = true
}

# Moves orders to another site. The URIs, which contain passwords, are in no plan and no state.
resource "rabbitmq_shovel" "orders" {
  name = "orders"

  info {
    source_uris_wo       = var.uris.source
    source_queue         = "orders"
    destination_uris_wo  = var.uris.destination # such as ["amqps://shovel:secret@south.example.com/shop"]
    destination_exchange = "orders"
    uris_wo_version      = 1
  }
}
