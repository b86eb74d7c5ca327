# The name.
terraform import rabbitmq_vhost.shop shop
