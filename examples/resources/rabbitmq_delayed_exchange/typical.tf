variable "password" {
  type      = string
  ephemeral = true
}

resource "rabbitmq_delayed_exchange" "reminders" {
  name      = "reminders"
  type      = "direct" # how reminders.deliver routes due messages; default: topic
  max_delay = "24h"    # longer delays go to the unrouted queue
  precision = "2s"     # delays are rounded up to it; a coarser precision needs fewer levels
}

resource "rabbitmq_queue" "mail" {
  name = "reminders.mail"
}

resource "rabbitmq_binding" "mail" {
  source      = rabbitmq_delayed_exchange.reminders.deliver_exchange
  destination = rabbitmq_queue.mail.name
  routing_key = "mail"
}

resource "rabbitmq_user" "sidecar" {
  name                = "sidecar"
  password_wo         = var.password
  password_wo_version = 1
  permissions         = { "/" = rabbitmq_delayed_exchange.reminders.worker_permissions }
}
