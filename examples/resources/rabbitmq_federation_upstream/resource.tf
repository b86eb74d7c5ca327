variable "north_uri" {
  type      = string
  sensitive = true
}

resource "rabbitmq_federation_upstream" "north" {
  name = "north"

  definition {
    uri     = var.north_uri
    expires = 3600000
  }
}

resource "rabbitmq_policy" "federated" {
  name       = "federated"
  pattern    = "^events$"
  apply_to   = "exchanges"
  definition = { federation-upstream = rabbitmq_federation_upstream.north.name }
}
