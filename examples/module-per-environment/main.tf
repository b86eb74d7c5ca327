terraform {
  required_providers {
    rabbitmq = {
      source  = "rabbitmq-retry/rabbitmq"
      version = "~> 0.1"
    }
  }
}

provider "rabbitmq" {}

# The same pipeline in two virtual hosts: quick retries in staging, patient ones in production.
module "staging" {
  source = "./retry"

  vhost  = var.staging_vhost
  delays = ["1s", "5s"]
}

module "production" {
  source = "./retry"

  vhost        = var.production_vhost
  delays       = ["5s", "30s", "5m", "30m"]
  max_attempts = 10
}

# A sidecar per environment, each with its own configuration and credentials.
output "worker_config" {
  value = {
    staging    = module.staging.worker_config
    production = module.production.worker_config
  }
}
