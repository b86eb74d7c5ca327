# terraform query -generate-config-out=generated.tf
list "rabbitmq_exchange" "all" {
  provider         = rabbitmq
  include_resource = true

  config {
    vhost = "/"
  }
}
