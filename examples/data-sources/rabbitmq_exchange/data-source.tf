data "rabbitmq_exchange" "topic" {
  name = "amq.topic"
}
