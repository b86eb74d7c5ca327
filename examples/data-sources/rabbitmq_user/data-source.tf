data "rabbitmq_default_user" "terraform" {}

data "rabbitmq_user" "terraform" {
  name = data.rabbitmq_default_user.terraform.name
}
