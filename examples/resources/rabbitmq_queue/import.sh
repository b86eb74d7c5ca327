# <vhost>/<name>, percent-encoded: the queue "orders.created" in the vhost "/".
terraform import rabbitmq_queue.created %2F/orders.created
