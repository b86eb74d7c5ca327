# <vhost>/<pipeline>/<queue>, all percent-encoded: the queue "invoices" of the pipeline "orders" in the vhost "/".
terraform import rabbitmq_retry_attachment.invoices %2F/orders/invoices
