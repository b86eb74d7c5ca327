terraform {
  required_providers {
    rabbitmq = {
      source = "rabbitmq-retry/rabbitmq"
    }
    # Users and permissions. Its resource types begin with rabbitmq_, too, so they have to name it.
    broker = {
      source  = "cyrilgdn/rabbitmq"
      version = "~> 1.10"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 2.36"
    }
  }
}

# Both take endpoint and credentials from RABBITMQ_ENDPOINT, RABBITMQ_USERNAME and RABBITMQ_PASSWORD.
provider "rabbitmq" {}
provider "broker" {}

provider "kubernetes" {
  config_path = "~/.kube/config"
}
