data "rabbitmq_exchange" "this" {
  name = "amq.topic"
}
