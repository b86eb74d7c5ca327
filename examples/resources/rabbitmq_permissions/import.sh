# <vhost>/<user>, percent-encoded: the permissions of the user "shop" in the vhost "/".
terraform import rabbitmq_permissions.shop %2F/shop
