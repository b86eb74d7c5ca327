# <vhost>/<component>/<name>, percent-encoded: the upstream set "both" in the vhost "/".
terraform import rabbitmq_parameter.both %2F/federation-upstream-set/both
