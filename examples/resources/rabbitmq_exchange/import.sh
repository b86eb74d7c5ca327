# <vhost>/<name>, percent-encoded: the exchange "orders" in the vhost "/".
terraform import rabbitmq_exchange.orders %2F/orders
