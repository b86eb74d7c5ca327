# terraform query -generate-config-out=generated.tf
list "rabbitmq_vhost" "all" {
  provider         = rabbitmq
  include_resource = true
}
