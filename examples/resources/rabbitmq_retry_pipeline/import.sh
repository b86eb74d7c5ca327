# <vhost>/<name>, both percent-encoded: the pipeline "orders" in the vhost "/".
terraform import rabbitmq_retry_pipeline.orders %2F/orders
