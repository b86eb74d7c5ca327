# terraform query -generate-config-out=generated.tf
list "rabbitmq_operator_policy" "all" {
  provider         = rabbitmq
  include_resource = true

  config {
    vhost = "/"
  }
}
