# <vhost>/<source>/<destination_type>/<destination>/<routing key>.
terraform import rabbitmq_binding.created '%2F/orders/queue/orders.created/order.created'
