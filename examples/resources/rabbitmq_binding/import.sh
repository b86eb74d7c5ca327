# <vhost>/<source>/<destination_type>/<destination>/<properties_key>, percent-encoded. Without arguments, the properties key is the routing key, or ~ if that is empty.
terraform import rabbitmq_binding.created %2F/orders/queue/orders.created/order.created
