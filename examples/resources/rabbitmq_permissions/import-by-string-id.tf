import {
  to = rabbitmq_permissions.shop
  id = "%2F/shop" # <vhost>/<user>, percent-encoded
}
