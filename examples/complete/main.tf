terraform {
  required_version = ">= 1.11" # for password_wo
  required_providers {
    rabbitmq = {
      source  = "rabbitmq-retry/rabbitmq"
      version = "~> 0.1"
    }
  }
}

# RABBITMQ_ENDPOINT, RABBITMQ_USERNAME and RABBITMQ_PASSWORD are those of an administrator, who can make users.
provider "rabbitmq" {}

resource "rabbitmq_vhost" "shop" {
  name = var.vhost
}

resource "rabbitmq_exchange" "events" {
  name  = "events"
  vhost = rabbitmq_vhost.shop.name
  type  = "topic"
}

resource "rabbitmq_queue" "work" {
  for_each = toset(flatten(values(var.pipelines)[*].queues))

  name  = each.key
  vhost = rabbitmq_vhost.shop.name

  lifecycle {
    create_before_destroy = true # so that a removed queue goes after its pipeline has released it
  }
}

resource "rabbitmq_binding" "work" {
  for_each = rabbitmq_queue.work

  vhost       = rabbitmq_vhost.shop.name
  source      = rabbitmq_exchange.events.name
  destination = each.value.name
  routing_key = each.key
}

resource "rabbitmq_retry_pipeline" "all" {
  for_each = var.pipelines

  name        = each.key
  vhost       = rabbitmq_vhost.shop.name
  delays      = each.value.delays
  work_queues = { for queue in each.value.queues : rabbitmq_queue.work[queue].name => {} }
}

# What is published here with the header x-delay comes to the same queues when it is due.
resource "rabbitmq_delayed_exchange" "later" {
  name      = "later"
  vhost     = rabbitmq_vhost.shop.name
  type      = "topic"
  max_delay = "24h"
}

resource "rabbitmq_binding" "due" {
  for_each = rabbitmq_queue.work

  vhost       = rabbitmq_vhost.shop.name
  source      = rabbitmq_delayed_exchange.later.deliver_exchange
  destination = each.value.name
  routing_key = each.key
}

locals {
  served = concat(values(rabbitmq_retry_pipeline.all), [rabbitmq_delayed_exchange.later])
  none   = { configure = "^$", write = "^$", read = "^$" }

  # A pipeline that is added changes these in the same apply.
  permissions = {
    publisher = provider::rabbitmq::merge_permissions(
      merge(local.none, { write = "^${rabbitmq_exchange.events.name}$" }),
      rabbitmq_delayed_exchange.later.publisher_permissions,
    )
    consumer = merge(local.none, {
      read = "^(${join("|", [for queue in rabbitmq_queue.work : replace(queue.name, ".", "\\.")])})$"
    })
    sidecar = provider::rabbitmq::merge_permissions(local.served[*].worker_permissions...)
    operator = provider::rabbitmq::merge_permissions(flatten([for s in local.served : [
      for command in ["list", "replay", "delete", "status"] : s.operator_permissions[command]
    ]])...)
  }
}

# Each with the least that it needs. Users are the broker's, hence the virtual host in their names.
resource "rabbitmq_user" "all" {
  for_each = local.permissions

  name                = "${var.vhost}-${each.key}"
  password_wo         = var.passwords[each.key]
  password_wo_version = var.passwords_version
  permissions         = { (rabbitmq_vhost.shop.name) = each.value }
}
