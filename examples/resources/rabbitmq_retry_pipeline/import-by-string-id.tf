import {
  to = rabbitmq_retry_pipeline.orders
  id = "%2F/orders" # <vhost>/<name>, both percent-encoded
}
