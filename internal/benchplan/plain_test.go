//go:build bench

package benchplan

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// plainConfig makes pipelines by hand, in a form that the provider cyrilgdn/rabbitmq also accepts.
const plainConfig = terraformtest.Required + `

variable "vhost" { type = string }
variable "pipelines" { type = set(string) }
variable "length" { type = number }

resource "rabbitmq_vhost" "all" { name = var.vhost }

resource "rabbitmq_exchange" "dlx" {
  for_each = var.pipelines
  name     = "${each.key}.dlx"
  vhost    = rabbitmq_vhost.all.name
  settings {
    type    = "fanout"
    durable = true
  }
}

resource "rabbitmq_exchange" "retry" {
  for_each = var.pipelines
  name     = "${each.key}.retry"
  vhost    = rabbitmq_vhost.all.name
  settings {
    type    = "direct"
    durable = true
  }
}

resource "rabbitmq_exchange" "return" {
  for_each = var.pipelines
  name     = "${each.key}.return"
  vhost    = rabbitmq_vhost.all.name
  settings {
    type    = "direct"
    durable = true
  }
}

resource "rabbitmq_queue" "work" {
  for_each = var.pipelines
  name     = "${each.key}.work"
  vhost    = rabbitmq_vhost.all.name
  settings {
    durable   = true
    arguments = { "x-queue-type" = "quorum" }
  }
}

resource "rabbitmq_queue" "inbox" {
  for_each = var.pipelines
  name     = "${each.key}.inbox"
  vhost    = rabbitmq_vhost.all.name
  settings {
    durable   = true
    arguments = { "x-queue-type" = "quorum" }
  }
}

resource "rabbitmq_queue" "retry" {
  for_each = var.pipelines
  name     = "${each.key}.retry"
  vhost    = rabbitmq_vhost.all.name
  settings {
    durable = true
    arguments_json = jsonencode({
      "x-queue-type"           = "quorum"
      "x-message-ttl"          = 5000
      "x-dead-letter-exchange" = rabbitmq_exchange.return[each.key].name
    })
  }
}

resource "rabbitmq_queue" "failed" {
  for_each = var.pipelines
  name     = "${each.key}.failed"
  vhost    = rabbitmq_vhost.all.name
  settings {
    durable   = true
    arguments = { "x-queue-type" = "quorum" }
  }
}

resource "rabbitmq_binding" "inbox" {
  for_each         = var.pipelines
  vhost            = rabbitmq_vhost.all.name
  source           = rabbitmq_exchange.dlx[each.key].name
  destination      = rabbitmq_queue.inbox[each.key].name
  destination_type = "queue"
}

resource "rabbitmq_binding" "retry" {
  for_each         = var.pipelines
  vhost            = rabbitmq_vhost.all.name
  source           = rabbitmq_exchange.retry[each.key].name
  destination      = rabbitmq_queue.retry[each.key].name
  destination_type = "queue"
  routing_key      = "retry"
}

resource "rabbitmq_binding" "failed" {
  for_each         = var.pipelines
  vhost            = rabbitmq_vhost.all.name
  source           = rabbitmq_exchange.retry[each.key].name
  destination      = rabbitmq_queue.failed[each.key].name
  destination_type = "queue"
  routing_key      = "failed"
}

resource "rabbitmq_binding" "work" {
  for_each         = var.pipelines
  vhost            = rabbitmq_vhost.all.name
  source           = rabbitmq_exchange.return[each.key].name
  destination      = rabbitmq_queue.work[each.key].name
  destination_type = "queue"
  routing_key      = rabbitmq_queue.work[each.key].name
}

resource "rabbitmq_policy" "work" {
  for_each = var.pipelines
  name     = each.key
  vhost    = rabbitmq_vhost.all.name
  policy {
    pattern  = "^${each.key}\\.work$"
    priority = 10
    apply_to = "queues"
    definition = {
      "dead-letter-exchange" = rabbitmq_exchange.dlx[each.key].name
      "max-length"           = var.length
    }
  }
}
`

// plainObjects are those that the configuration makes for one pipeline.
func plainObjects(name string) topology.Topology {
	t := topology.New()
	t.Exchanges[name+".dlx"] = topology.Exchange{Type: "fanout"}
	t.Exchanges[name+".retry"] = topology.Exchange{Type: "direct"}
	t.Exchanges[name+".return"] = topology.Exchange{Type: "direct"}
	for _, queue := range []string{".work", ".inbox", ".retry", ".failed"} {
		t.Queues[name+queue] = topology.Queue{Type: topology.Quorum}
	}
	t.Queues[name+".retry"] = topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{
		"x-message-ttl": 5000, "x-dead-letter-exchange": name + ".return",
	}}
	t.Bindings = []topology.Binding{
		{Source: name + ".dlx", Destination: name + ".inbox"},
		{Source: name + ".retry", Destination: name + ".retry", RoutingKey: "retry"},
		{Source: name + ".retry", Destination: name + ".failed", RoutingKey: "failed"},
		{Source: name + ".return", Destination: name + ".work", RoutingKey: name + ".work"},
	}
	t.Policies[name] = topology.Policy{
		Pattern: "^" + name + `\.work$`, Priority: 10, ApplyTo: "queues",
		Definition: topology.Arguments{"dead-letter-exchange": name + ".dlx", "max-length": 1000},
	}
	return t
}

// plainVariables are the configuration's, as a file for the CLI. The vhost is a new one, which the test deletes.
func plainVariables(t *testing.T, b *brokertest.Broker, pipelines map[string]string, length int) string {
	t.Helper()
	vhost := b.Vhost + ".plain"
	t.Cleanup(func() { _, _, _ = b.Try(http.MethodDelete, api("vhosts", vhost), nil) })
	names := []string{}
	for name := range maps.Keys(pipelines) {
		names = append(names, name)
	}
	text, err := json.Marshal(map[string]any{"vhost": vhost, "pipelines": names, "length": length})
	require.NoError(t, err)
	return string(text)
}
