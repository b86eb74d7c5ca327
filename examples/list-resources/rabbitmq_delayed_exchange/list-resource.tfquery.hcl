# terraform query -generate-config-out=generated.tf
list "rabbitmq_delayed_exchange" "all" {
  provider         = rabbitmq
  include_resource = true

  config {
    vhost = "/"
  }
}
