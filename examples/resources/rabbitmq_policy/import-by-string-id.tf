import {
  to = rabbitmq_policy.size
  id = "%2F/size" # <vhost>/<name>, percent-encoded
}
