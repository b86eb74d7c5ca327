# The name.
terraform import rabbitmq_user.worker retry
