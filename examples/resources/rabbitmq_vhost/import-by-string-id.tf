import {
  to = rabbitmq_vhost.shop
  id = "shop" # The name
}
