# terraform query -generate-config-out=generated.tf
list "rabbitmq_user" "all" {
  provider         = rabbitmq
  include_resource = true
}
