# <vhost>/<name>, percent-encoded: the policy "size" in the vhost "/".
terraform import rabbitmq_policy.size %2F/size
