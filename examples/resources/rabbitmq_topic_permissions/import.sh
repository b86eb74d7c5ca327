# <vhost>/<user>, percent-encoded: the topic permissions of the user "shop" in the vhost "/".
terraform import rabbitmq_topic_permissions.shop %2F/shop
