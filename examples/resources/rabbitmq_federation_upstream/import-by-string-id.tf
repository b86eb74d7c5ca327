import {
  to = rabbitmq_federation_upstream.north
  id = "%2F/north" # <vhost>/<name>, percent-encoded
}
