import {
  to = rabbitmq_retry_attachment.invoices
  id = "%2F/orders/invoices" # <vhost>/<pipeline>/<queue>, all percent-encoded
}
