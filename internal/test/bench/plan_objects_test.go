//go:build bench

package bench

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// planConfig makes the pipelines, each attached to work queues that are there already.
const planConfig = terraformtest.Required + `

variable "pipelines" { type = map(string) }
variable "work_queues" { type = map(map(object({ failed_queue = optional(object({ name = string })) }))) }
variable "delays" { type = list(string) }

resource "rabbitmq_retry_pipeline" "each" {
  for_each = var.pipelines

  name        = each.key
  vhost       = each.value
  delays      = var.delays
  work_queues = var.work_queues[each.key]
}
`

var (
	planDelays    = []string{"1s", "5s", "30s", "5m", "1h"}
	changedDelays = []string{"1s", "5s", "30s", "5m", "2h"}
)

// workQueues returns the work queues of a pipeline. The first ones have failed queues of their own.
func (s scenario) workQueues(name string) map[string]pipeline.WorkQueue {
	queues := map[string]pipeline.WorkQueue{}
	if s.plain {
		return queues
	}
	for i := range max(s.perPipeline, 1) {
		w := pipeline.WorkQueue{Type: topology.Quorum}
		if i < s.failedQueues {
			w.FailedQueue = fmt.Sprintf("failed.%s.%04d", name, i)
		}
		queues[fmt.Sprintf("work.%s.%04d", name, i)] = w
	}
	return queues
}

// configured is work_queues of one pipeline.
func (s scenario) configured(name string) object {
	queues := object{}
	for queue, w := range s.workQueues(name) {
		queues[queue] = object{}
		if w.FailedQueue != "" {
			queues[queue] = object{"failed_queue": object{"name": w.FailedQueue}}
		}
	}
	return queues
}

// variables are the configuration's, as a file for the CLI.
func (s scenario) variables(t *testing.T, pipelines map[string]string, delays []string) string {
	t.Helper()
	workQueues := object{}
	for name := range pipelines {
		workQueues[name] = s.configured(name)
	}
	return text(t, object{"pipelines": pipelines, "work_queues": workQueues, "delays": delays})
}

// objects returns the objects of one pipeline.
func (s scenario) objects(name, vhost string) topology.Topology {
	if s.plain {
		return plainObjects(name)
	}
	p := pipeline.Pipeline{
		Name: name, Vhost: vhost, MaxAttempts: len(planDelays) + 1, RetryOn: []string{pipeline.ReasonRejected},
		QueueType: topology.Quorum, PolicyPriority: pipeline.DefaultPolicyPriority,
		WorkQueues: s.workQueues(name),
	}
	for _, spelling := range planDelays {
		wait, _ := pipeline.ParseDelay(spelling)
		p.Delays = append(p.Delays, pipeline.Delay{Wait: wait, Spelling: spelling})
	}
	return p.Expand()
}

// importForeign makes what others have in the vhost: policies that match no queue of the pipelines, and beside these queues, each
// with a binding of its own to a topic exchange. In a chain, the exchange is the last of three, and 500 policies match one queue each.
func (s scenario) importForeign(t testing.TB, b *brokertest.Broker) {
	t.Helper()
	definitions := map[string][]object{}
	add := func(kind string, o object) { definitions[kind] = append(definitions[kind], o) }
	policy := func(i int, pattern string) {
		add("policies", object{
			"name": fmt.Sprintf("foreign-%03d", i), "pattern": fmt.Sprintf(pattern, i), "apply-to": "queues", "priority": i % 10,
			"definition": object{"max-length": 100_000 + i},
		})
	}
	bind := func(source, kind, destination, key string) {
		add("bindings", object{"source": source, "destination": destination, "destination_type": kind, "routing_key": key, "arguments": object{}})
	}
	post := func() {
		if len(definitions) > 0 {
			send(t, b, [][]call{{{http.MethodPost, api("definitions", b.Vhost), definitions}}})
		}
		clear(definitions)
	}
	for i := range s.policies {
		policy(i, `^team-%03d\.(orders|refunds)(\.[a-z]+)?$`)
	}
	queues, chain := *foreign, []string{"events"}
	switch s.beside {
	case "":
		queues, chain = 0, nil
	case "chain":
		chain = []string{"events", "regions", "shops"}
		for i := range 500 {
			policy(i, `^foreign\.%d$`)
		}
	}
	for i, name := range chain {
		add("exchanges", object{"name": name, "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": object{}})
		if i > 0 {
			bind(chain[i-1], "exchange", name, "#")
		}
	}
	const most = 2000
	for i := range queues {
		queue, key := fmt.Sprintf("foreign.%d", i), fmt.Sprintf("k.%d", i)
		if s.beside == "wildcard" {
			key = fmt.Sprintf([]string{"*.k%d.#", "k%d.*", "#.k%d"}[i%3], i)
		}
		add("queues", object{"name": queue, "durable": true, "auto_delete": false, "arguments": object{"x-queue-type": "classic"}})
		bind(chain[len(chain)-1], "queue", queue, key)
		if len(definitions["queues"]) == most {
			post()
		}
	}
	post()
}

// plainConfig makes pipelines by hand, in a form that the provider cyrilgdn/rabbitmq also accepts. Each object has a block of its own:
// with for_each, every reference would make Terraform itself evaluate all instances, and that would take most of the time.
func plainConfig(t *testing.T, pipelines map[string]string) string {
	t.Helper()
	id := func(name string) string { return strings.ReplaceAll(name, ".", "_") }
	nameOf := func(kind, name string) string { return "rabbitmq_" + kind + "." + id(name) + ".name" }
	resources := map[string]object{
		"rabbitmq_vhost":    {"all": object{"name": "${var.vhost}"}},
		"rabbitmq_exchange": {}, "rabbitmq_queue": {}, "rabbitmq_binding": {}, "rabbitmq_policy": {},
	}
	add := func(kind, name string, attributes object) {
		attributes["vhost"] = "${rabbitmq_vhost.all.name}"
		resources["rabbitmq_"+kind][id(name)] = attributes
	}
	for pipeline := range pipelines {
		objects := plainObjects(pipeline)
		for name, e := range objects.Exchanges {
			add("exchange", name, object{"name": name, "settings": object{"type": e.Type, "durable": true}})
		}
		for name, q := range objects.Queues {
			settings := object{"durable": true, "arguments": object{"x-queue-type": q.Type}}
			if q.Arguments != nil {
				settings = object{"durable": true, "arguments_json": fmt.Sprintf(
					`${jsonencode({"x-queue-type" = "quorum", "x-message-ttl" = 5000, "x-dead-letter-exchange" = %s})}`,
					nameOf("exchange", pipeline+".return"))}
			}
			add("queue", name, object{"name": name, "settings": settings})
		}
		for _, b := range objects.Bindings {
			add("binding", b.Destination, object{
				"source": "${" + nameOf("exchange", b.Source) + "}", "destination": "${" + nameOf("queue", b.Destination) + "}",
				"destination_type": "queue", "routing_key": b.RoutingKey,
			})
		}
		for name, p := range objects.Policies {
			add("policy", name, object{"name": name, "policy": object{
				"pattern": p.Pattern, "priority": p.Priority, "apply_to": p.ApplyTo, "definition": object{
					"dead-letter-exchange": "${" + nameOf("exchange", pipeline+".dlx") + "}", "max-length": "${var.length}",
				},
			}})
		}
	}
	return text(t, object{"resource": resources, "variable": object{"vhost": object{"type": "string"}, "length": object{"type": "number"}}})
}

// plainObjects returns the objects of one pipeline that is made of plain resources.
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
	return text(t, object{"vhost": vhost, "length": length})
}
