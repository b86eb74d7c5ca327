terraform {
  required_providers {
    rabbitmq = {
      source = "rabbitmq-retry/rabbitmq"
    }
  }
}
