terraform {
  required_version = ">= 1.11" # for password_wo
  required_providers {
    rabbitmq = {
      source  = "rabbitmq-retry/rabbitmq"
      version = "~> 0.1"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 2.36"
    }
  }
}

# RABBITMQ_ENDPOINT, RABBITMQ_USERNAME and RABBITMQ_PASSWORD are those of an administrator.
provider "rabbitmq" {}

provider "kubernetes" {
  config_path = "~/.kube/config"
}
