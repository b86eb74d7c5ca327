# <vhost>/<name>, both percent-encoded: the delayed exchange "events" in the vhost "/".
terraform import rabbitmq_delayed_exchange.events %2F/events
