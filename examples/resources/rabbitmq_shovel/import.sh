# <vhost>/<name>, percent-encoded: the shovel "orders" in the vhost "/".
terraform import rabbitmq_shovel.orders %2F/orders
