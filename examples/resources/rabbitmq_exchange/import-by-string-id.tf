import {
  to = rabbitmq_exchange.orders
  id = "%2F/orders" # <vhost>/<name>, percent-encoded
}
