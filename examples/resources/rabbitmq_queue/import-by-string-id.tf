import {
  to = rabbitmq_queue.created
  id = "%2F/orders.created" # <vhost>/<name>, percent-encoded
}
