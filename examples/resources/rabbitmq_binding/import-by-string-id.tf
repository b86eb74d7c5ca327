import {
  to = rabbitmq_binding.created
  id = "%2F/orders/queue/orders.created/order.created" # <vhost>/<source>/<destination_type>/<destination>/<routing key>
}
