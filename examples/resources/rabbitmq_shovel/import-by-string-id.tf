import {
  to = rabbitmq_shovel.orders
  id = "%2F/orders" # <vhost>/<name>, percent-encoded
}
