resource "rabbitmq_delayed_exchange" "events" {
  name      = "events" # publish here, with the header x-delay in milliseconds
  max_delay = "720h"   # 30 days
}

output "worker_config" {
  value = jsonencode({ delayed_exchanges = [rabbitmq_delayed_exchange.events.worker] })
}
