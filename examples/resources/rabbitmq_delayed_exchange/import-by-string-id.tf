import {
  to = rabbitmq_delayed_exchange.events
  id = "%2F/events" # <vhost>/<name>, both percent-encoded
}
