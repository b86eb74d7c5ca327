terraform {
  required_providers {
    rabbitmq = {
      source = "rabbitmq-retry/rabbitmq"
    }
  }
}

# Every setting can come from the environment instead, such as RABBITMQ_ENDPOINT, RABBITMQ_USERNAME
# and RABBITMQ_PASSWORD. Keep the password there.
provider "rabbitmq" {}

resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  delays = ["5s", "30s", "5m"]

  work_queues = {
    "orders.created" = {}
  }
}
