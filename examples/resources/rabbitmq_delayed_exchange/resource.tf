resource "rabbitmq_delayed_exchange" "events" {
  name      = "events" # publishers publish here, with the header x-delay in milliseconds
  type      = "topic"  # how events.deliver routes what is due
  max_delay = "720h"   # decides how many levels there are
  precision = "100ms"  # delays are rounded up to it
}

output "worker_config" {
  value = jsonencode({ delayed_exchanges = [rabbitmq_delayed_exchange.events.worker] })
}
