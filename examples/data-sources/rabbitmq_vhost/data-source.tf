data "rabbitmq_vhost" "this" {
  name = "/"
}
