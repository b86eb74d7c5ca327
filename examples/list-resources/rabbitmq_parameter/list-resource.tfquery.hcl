# terraform query -generate-config-out=generated.tf
list "rabbitmq_parameter" "all" {
  provider         = rabbitmq
  include_resource = true

  config {
    vhost = "/"
  }
}
