# terraform query -generate-config-out=generated.tf
list "rabbitmq_federation_upstream" "all" {
  provider         = rabbitmq
  include_resource = true

  config {
    vhost = "/"
  }
}
