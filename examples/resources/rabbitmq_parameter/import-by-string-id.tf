import {
  to = rabbitmq_parameter.both
  id = "%2F/federation-upstream-set/both" # <vhost>/<component>/<name>, percent-encoded
}
