# terraform query -generate-config-out=generated.tf
list "rabbitmq_retry_attachment" "all" {
  provider         = rabbitmq
  include_resource = true

  config {
    vhost = "/"
  }
}
