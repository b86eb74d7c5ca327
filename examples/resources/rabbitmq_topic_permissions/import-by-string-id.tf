import {
  to = rabbitmq_topic_permissions.shop
  id = "%2F/shop" # <vhost>/<user>, percent-encoded
}
