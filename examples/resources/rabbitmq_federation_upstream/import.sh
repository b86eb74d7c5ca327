# <vhost>/<name>, percent-encoded: the federation upstream "north" in the vhost "/".
terraform import rabbitmq_federation_upstream.north %2F/north
