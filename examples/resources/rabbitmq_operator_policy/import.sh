# <vhost>/<name>, percent-encoded: the operator policy "size" in the vhost "/".
terraform import rabbitmq_operator_policy.size %2F/size
