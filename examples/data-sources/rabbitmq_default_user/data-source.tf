data "rabbitmq_default_user" "terraform" {}
