import {
  to = rabbitmq_operator_policy.size
  id = "%2F/size" # <vhost>/<name>, percent-encoded
}
