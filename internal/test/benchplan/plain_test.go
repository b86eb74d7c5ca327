//go:build bench

package benchplan

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// plainConfig makes pipelines by hand, in a form that the provider cyrilgdn/rabbitmq also accepts. Each object has a block of its own:
// with for_each, every reference would make Terraform itself evaluate all instances, and that would take most of the time.
func plainConfig(pipelines map[string]string) string {
	var all strings.Builder
	all.WriteString(plainVhost)
	for name := range pipelines {
		all.WriteString(strings.ReplaceAll(plainPipeline, "NAME", name))
	}
	return all.String()
}

const plainVhost = terraformtest.Required + `

variable "vhost" { type = string }
variable "length" { type = number }

resource "rabbitmq_vhost" "all" { name = var.vhost }
`

const plainPipeline = `
resource "rabbitmq_exchange" "NAME_dlx" {
  name  = "NAME.dlx"
  vhost = rabbitmq_vhost.all.name
  settings {
    type    = "fanout"
    durable = true
  }
}

resource "rabbitmq_exchange" "NAME_retry" {
  name  = "NAME.retry"
  vhost = rabbitmq_vhost.all.name
  settings {
    type    = "direct"
    durable = true
  }
}

resource "rabbitmq_exchange" "NAME_return" {
  name  = "NAME.return"
  vhost = rabbitmq_vhost.all.name
  settings {
    type    = "direct"
    durable = true
  }
}

resource "rabbitmq_queue" "NAME_work" {
  name  = "NAME.work"
  vhost = rabbitmq_vhost.all.name
  settings {
    durable   = true
    arguments = { "x-queue-type" = "quorum" }
  }
}

resource "rabbitmq_queue" "NAME_inbox" {
  name  = "NAME.inbox"
  vhost = rabbitmq_vhost.all.name
  settings {
    durable   = true
    arguments = { "x-queue-type" = "quorum" }
  }
}

resource "rabbitmq_queue" "NAME_retry" {
  name  = "NAME.retry"
  vhost = rabbitmq_vhost.all.name
  settings {
    durable = true
    arguments_json = jsonencode({
      "x-queue-type"           = "quorum"
      "x-message-ttl"          = 5000
      "x-dead-letter-exchange" = rabbitmq_exchange.NAME_return.name
    })
  }
}

resource "rabbitmq_queue" "NAME_failed" {
  name  = "NAME.failed"
  vhost = rabbitmq_vhost.all.name
  settings {
    durable   = true
    arguments = { "x-queue-type" = "quorum" }
  }
}

resource "rabbitmq_binding" "NAME_inbox" {
  vhost            = rabbitmq_vhost.all.name
  source           = rabbitmq_exchange.NAME_dlx.name
  destination      = rabbitmq_queue.NAME_inbox.name
  destination_type = "queue"
}

resource "rabbitmq_binding" "NAME_retry" {
  vhost            = rabbitmq_vhost.all.name
  source           = rabbitmq_exchange.NAME_retry.name
  destination      = rabbitmq_queue.NAME_retry.name
  destination_type = "queue"
  routing_key      = "retry"
}

resource "rabbitmq_binding" "NAME_failed" {
  vhost            = rabbitmq_vhost.all.name
  source           = rabbitmq_exchange.NAME_retry.name
  destination      = rabbitmq_queue.NAME_failed.name
  destination_type = "queue"
  routing_key      = "failed"
}

resource "rabbitmq_binding" "NAME_work" {
  vhost            = rabbitmq_vhost.all.name
  source           = rabbitmq_exchange.NAME_return.name
  destination      = rabbitmq_queue.NAME_work.name
  destination_type = "queue"
  routing_key      = rabbitmq_queue.NAME_work.name
}

resource "rabbitmq_policy" "NAME_work" {
  name  = "NAME"
  vhost = rabbitmq_vhost.all.name
  policy {
    pattern  = "^NAME\\.work$"
    priority = 10
    apply_to = "queues"
    definition = {
      "dead-letter-exchange" = rabbitmq_exchange.NAME_dlx.name
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
func plainVariables(t *testing.T, b *brokertest.Broker, length int) string {
	t.Helper()
	vhost := b.Vhost + ".plain"
	t.Cleanup(func() { _, _, _ = b.Try(http.MethodDelete, api("vhosts", vhost), nil) })
	text, err := json.Marshal(map[string]any{"vhost": vhost, "length": length})
	require.NoError(t, err)
	return string(text)
}
