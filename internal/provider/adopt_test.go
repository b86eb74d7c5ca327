package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/adopt"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Names that need escapes in HCL or in an import id. The last four would all have the label a_b.
var awkward = []string{`$${x}`, `%%{if}`, `$`, `a "quoted" \name`, "50%/day", "@at #hash ~tilde", "for", "Größe ✓", "7", "a/b", "a%2Fb", "a.b", "a_b"}

// adopts takes over what the vhost has: the plan has imports alone, and the apply changes nothing.
func adopts(t *testing.T, b *brokertest.Broker) adopt.Adopted {
	t.Helper()
	live, err := acctest.Client(t, b).List(t.Context(), b.Vhost)
	require.NoError(t, err)
	adopted := adopt.Vhost(live, nil, nil)
	tf := acctest.NewCLI(t, acctest.Quick())
	resources := 0
	for name, text := range adopted.Folders[0].Files {
		tf.Write(t, name, text)
	}
	for _, count := range adopted.Resources {
		resources += count
	}
	printed, code := tf.Exit(t, "fmt", "-check", "-diff")
	require.Zero(t, code, printed)
	tf.Run(t, "validate")
	require.Contains(t, tf.Run(t, "plan", "-no-color", "-out=plan"),
		fmt.Sprintf("Plan: %d to import, 0 to add, 0 to change, 0 to destroy.", resources))

	before := acctest.List(t, b)
	tf.Run(t, "apply", "plan")
	require.NoError(t, before.RequireSame(acctest.List(t, b)))
	printed, code = tf.Exit(t, "plan", "-no-color", "-detailed-exitcode")
	require.Zero(t, code, printed)
	return adopted
}

func TestAcc_AdoptsAwkwardNames(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "adopt/${x} é")
	made := topology.New()
	arguments := topology.Arguments{"x-match": "all", "number": int64(1), "half": 0.5, "huge": 1e300, "yes": true, "list": []any{"a", int64(1)}}
	for _, name := range awkward {
		made.Exchanges[name] = topology.Exchange{Type: "topic", Arguments: topology.Arguments{"alternate-exchange": name}}
		made.Queues[name] = topology.Queue{Type: "classic", Arguments: topology.Arguments{"x-dead-letter-exchange": name, "x-max-length": int64(5)}}
		made.Policies[name] = topology.Policy{Pattern: "^" + name + `\.$`, ApplyTo: "queues", Priority: -3, Definition: topology.Arguments{
			"max-length": int64(7), "dead-letter-routing-key": name,
		}}
		made.Bindings = append(made.Bindings,
			topology.Binding{Source: name, Destination: name, RoutingKey: name + ".#"},
			topology.Binding{Source: name, Destination: awkward[0], ToExchange: true},
			topology.Binding{Source: "amq.headers", Destination: name, Arguments: arguments})
		if !strings.Contains(name, "~") { // the broker cannot list such a binding
			with := topology.Arguments{name: name}
			made.Bindings = append(made.Bindings, topology.Binding{Source: name, Destination: name, RoutingKey: name, Arguments: with})
		}
	}
	for _, key := range []string{"", "~", " ", "+", "%", "%25", "a/b", "a%2Fb", "k", "k~h", "%6b"} {
		made.Bindings = append(made.Bindings, topology.Binding{Source: "amq.topic", Destination: "a.b", RoutingKey: key})
	}
	made.Exchanges["inner"] = topology.Exchange{Type: "headers", Internal: true, Transient: true, AutoDelete: true}
	made.Bindings = append(made.Bindings, topology.Binding{Source: "inner", Destination: "amq.topic", ToExchange: true})
	made.Queues["stream"] = topology.Queue{Type: "stream"}
	made.Queues["quorum"] = topology.Queue{Type: "quorum"}
	b.Create(t, made)
	b.PutPolicy(t, "operator-policies", "limit", topology.Policy{Pattern: ".*", ApplyTo: "queues", Definition: topology.Arguments{"max-length": int64(9)}})

	adopted := adopts(t, b)
	for _, left := range adopted.Left {
		require.Contains(t, left, "which one is the work queue")
	}
	require.Equal(t, map[string]int{
		"rabbitmq_exchange": len(made.Exchanges), "rabbitmq_queue": len(made.Queues), "rabbitmq_policy": len(made.Policies),
		"rabbitmq_operator_policy": 1, "rabbitmq_binding": len(made.Bindings),
	}, adopted.Resources)
}

// Each step of queues with such names passes the checks of Terraform, and the last one leaves nothing to do.
func TestAcc_AdoptStepsOfAwkwardNames(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "adopt/${x} é")
	made, consumed := topology.New(), map[string]bool{}
	for _, name := range []string{`$${x} %%{if} "quoted" \name`, "50%/day @at #hash ~tilde", "Größe ✓", "7", "a.b", "a_b"} {
		made.Queues[name] = topology.Queue{Type: "classic", Arguments: topology.Arguments{"x-dead-letter-exchange": name}}
		made.Queues[name+" wait"] = topology.Queue{Type: "classic", Arguments: topology.Arguments{
			"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name, "x-message-ttl": int64(2000),
		}}
		made.Exchanges[name] = topology.Exchange{Type: "fanout"}
		made.Bindings = append(made.Bindings, topology.Binding{Source: name, Destination: name + " wait"},
			topology.Binding{Source: "amq.direct", Destination: name, RoutingKey: name})
		consumed[name] = true
	}
	b.Create(t, made)
	live, err := acctest.Client(t, b).List(t.Context(), b.Vhost)
	require.NoError(t, err)
	adopted := adopt.Vhost(live, nil, consumed)
	require.Empty(t, adopted.Left)
	require.Len(t, adopted.Folders, 5)
	tf := acctest.NewCLI(t, acctest.Quick())
	for _, folder := range adopted.Folders {
		for name, text := range folder.Files {
			tf.Write(t, name, text)
		}
		printed, code := tf.Exit(t, "fmt", "-check", "-diff")
		require.Zero(t, code, printed)
		if decisions, has := folder.Files[adopt.Decisions]; has {
			tf.Write(t, adopt.Decisions, strings.ReplaceAll(decisions, "FILL_IN", "4"))
		}
		tf.Run(t, "apply", "-auto-approve")
	}
	printed, code := tf.Exit(t, "plan", "-no-color", "-detailed-exitcode")
	require.Zero(t, code, printed)
	now, err := acctest.Client(t, b).List(t.Context(), b.Vhost)
	require.NoError(t, err)
	for name := range made.Exchanges {
		require.NotContains(t, now.Queues, name)
		require.NotContains(t, now.Exchanges, name)
		require.Contains(t, now.Queues, name+".v2")
	}
}

// If Terraform refuses to delete a waiting queue with messages, everything that these need stays: they come back.
func TestAcc_AdoptKeepsTheWayOfWhatWaits(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "adopt")
	made := topology.New()
	made.Exchanges["back"] = topology.Exchange{Type: "direct"}
	made.Queues["work"] = topology.Queue{Type: "classic", Arguments: topology.Arguments{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait",
	}}
	made.Queues["wait"] = topology.Queue{Type: "classic", Arguments: topology.Arguments{
		"x-dead-letter-exchange": "back", "x-dead-letter-routing-key": "work", "x-message-ttl": int64(20_000),
	}}
	made.Bindings = []topology.Binding{{Source: "back", Destination: "work", RoutingKey: "work"}}
	b.Create(t, made)
	live, err := acctest.Client(t, b).List(t.Context(), b.Vhost)
	require.NoError(t, err)
	tf := acctest.NewCLI(t, acctest.Quick())
	folders := adopt.Vhost(live, nil, map[string]bool{"work": true}).Folders
	for number, folder := range folders {
		for name, text := range folder.Files {
			tf.Write(t, name, strings.ReplaceAll(text, "FILL_IN", "4"))
		}
		if number < len(folders)-1 {
			tf.Run(t, "apply", "-auto-approve")
		}
	}
	b.Publish(t, "", "wait", amqp.Publishing{Body: []byte("kept")})
	printed, code := tf.Exit(t, "apply", "-auto-approve", "-no-color")
	require.NotZero(t, code, printed)
	_, deliveries := b.Consume(t, "work.v2", 1)
	require.Equal(t, "kept", string(brokertest.Receive(t, deliveries).Body))
}

func TestAcc_AdoptsPipelines(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work", "attached", "mine")
	b.DeclareQueue(t, "late", "classic", nil)
	delays := []pipeline.Delay{{Wait: 5 * time.Second, Spelling: "5s"}, {Wait: time.Minute, Spelling: "60s"}}
	p := pipeline.Pipeline{
		Name: "orders", Vhost: b.Vhost, Delays: delays, MaxAttempts: 9, RetryOn: []string{"rejected", "expired"}, QueueType: "quorum",
		PolicyPriority: pipeline.DefaultPolicyPriority, PolicyDefinition: topology.Arguments{"message-ttl": int64(5000000)},
		MaxAge: pipeline.Delay{Wait: time.Hour, Spelling: "60m"},
		WorkQueues: map[string]pipeline.WorkQueue{
			"work":     {Type: "quorum", MaxAttempts: 4, FailedQueue: "work.failed", PolicyDefinition: topology.Arguments{"message-ttl": nil}},
			"late":     {Type: "classic", FailedQueue: "mine", ForeignFailedQueue: true},
			"declared": {Type: "quorum", Declare: true, Arguments: topology.Arguments{"x-single-active-consumer": true}},
		},
	}
	a := pipeline.Attachment{
		Pipeline: "orders", Vhost: b.Vhost, Queue: "attached", PolicyPriority: 77,
		WorkQueue: pipeline.WorkQueue{Type: "quorum", DeadLetterStrategy: topology.AtMostOnce},
	}
	e := delayed.Exchange{
		Name: "events", Vhost: b.Vhost, Type: "direct", MaxDelay: delays[1], Precision: delays[0], PolicyPriority: delayed.DefaultPolicyPriority,
	}
	for _, made := range []topology.Topology{p.Expand(), a.Expand(), e.Expand()} {
		b.Create(t, made)
	}
	b.Bind(t, topology.Binding{Source: e.Names().DeliverExchange(), Destination: "work", RoutingKey: "due"})

	adopted := adopts(t, b)
	require.Empty(t, adopted.Left)
	require.Equal(t, map[string]int{
		"rabbitmq_retry_pipeline": 1, "rabbitmq_retry_attachment": 1, "rabbitmq_delayed_exchange": 1, "rabbitmq_queue": 4, "rabbitmq_binding": 1,
	}, adopted.Resources)
	require.Contains(t, adopted.Folders[0].Files["bindings.tf"], "rabbitmq_delayed_exchange.events.deliver_exchange")
	require.Contains(t, adopted.Folders[0].Files["retries.tf"], "(rabbitmq_queue.work.name)")
}

// What cannot be read is named, and none of its objects becomes a resource.
func TestAcc_AdoptsNothingOfDamagedOwners(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	delay := pipeline.Delay{Wait: time.Minute, Spelling: "1m"}
	p := pipeline.Pipeline{
		Name: "orders", Vhost: b.Vhost, Delays: []pipeline.Delay{delay}, MaxAttempts: 2, RetryOn: []string{"rejected"}, QueueType: "quorum",
		PolicyPriority: 3, WorkQueues: map[string]pipeline.WorkQueue{"work": {Type: "quorum"}},
	}
	e := delayed.Exchange{Name: "events", Vhost: b.Vhost, Type: "topic", MaxDelay: delay, Precision: delay, PolicyPriority: 3}
	for _, made := range []topology.Topology{p.Expand(), e.Expand()} {
		for _, binding := range made.Bindings {
			for key := range binding.Arguments {
				if key == pipeline.DefinitionArgument || key == delayed.DefinitionArgument {
					binding.Arguments[key] = "damaged"
				}
			}
		}
		b.Create(t, made)
	}
	adopted := adopts(t, b)
	require.Len(t, adopted.Left, 2)
	require.Equal(t, map[string]int{"rabbitmq_queue": 1}, adopted.Resources)
}
