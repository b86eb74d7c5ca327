package audit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// args are the arguments of a queue or exchange, or a policy's definition.
type args = topology.Arguments

// part adds something to a vhost.
type part func(*topology.Vhost)

// vhost combines parts to a vhost of RabbitMQ 4.3.
func vhost(parts ...part) topology.Vhost {
	v := topology.Vhost{Name: "/", Version: topology.Version{Major: 4, Minor: 3}, Nodes: 1}
	v.Exchanges, v.Queues, v.Policies = map[string]topology.Exchange{"": {Type: "direct"}}, map[string]topology.Queue{}, map[string]topology.Policy{}
	v.OperatorPolicies = map[string]topology.Policy{}
	for _, add := range parts {
		add(&v)
	}
	return v
}

func exchange(name, kind string, arguments args) part {
	return func(v *topology.Vhost) { v.Exchanges[name] = topology.Exchange{Type: kind, Arguments: arguments} }
}

func classic(name string, arguments args) part {
	return func(v *topology.Vhost) { v.Queues[name] = topology.Queue{Type: topology.Classic, Arguments: arguments} }
}

func quorum(name string, arguments args) part {
	return func(v *topology.Vhost) { v.Queues[name] = topology.Queue{Type: topology.Quorum, Arguments: arguments} }
}

func bind(source, queue, key string) part {
	return func(v *topology.Vhost) {
		v.Bindings = append(v.Bindings, topology.Binding{Source: source, Destination: queue, RoutingKey: key})
	}
}

func bindWith(source, queue string, arguments args) part {
	return func(v *topology.Vhost) {
		v.Bindings = append(v.Bindings, topology.Binding{Source: source, Destination: queue, Arguments: arguments})
	}
}

func policy(name, pattern string, priority int, definition args) part {
	return func(v *topology.Vhost) {
		v.Policies[name] = topology.Policy{Pattern: pattern, ApplyTo: "all", Priority: priority, Definition: definition}
	}
}

func version(major, minor int) part {
	return func(v *topology.Vhost) { v.Version = topology.Version{Major: major, Minor: minor} }
}

// all combines several parts.
func all(parts ...part) part {
	return func(v *topology.Vhost) {
		for _, add := range parts {
			add(v)
		}
	}
}

// expanded adds a complete retry pipeline "orders" that declares the work queue "work".
func expanded(queueType string) part { return expandedWith(pipeline.EngineWorker, queueType, nil) }

// expandedWith also sets the engine and more arguments of the work queue.
func expandedWith(engine, queueType string, arguments args) part {
	return expandedOf(engine, queueType, map[string]pipeline.WorkQueue{"work": {Type: queueType, Declare: true, Arguments: arguments}})
}

func expandedOf(engine, queueType string, workQueues map[string]pipeline.WorkQueue) part {
	return func(v *topology.Vhost) {
		p := pipeline.Pipeline{
			Name: "orders", Vhost: "/", Engine: engine, MaxAttempts: 3, RetryOn: []string{pipeline.ReasonRejected}, QueueType: queueType,
			Delays: []pipeline.Delay{{Wait: time.Second, Spelling: "1s"}}, PolicyPriority: pipeline.DefaultPolicyPriority,
			WorkQueues: workQueues,
		}
		v.Topology = topology.Merge(v.Topology, p.Expand())
	}
}

// teams gives the work queue its own failed queue.
func teams(v *topology.Vhost) { teamsOf(pipeline.EngineWorker)(v) }

func teamsOf(engine string) part {
	return expandedOf(engine, topology.Quorum, map[string]pipeline.WorkQueue{
		"work": {Type: topology.Quorum, Declare: true, FailedQueue: "failures"},
	})
}

// unbound removes the bindings of an exchange.
func unbound(exchange string) part {
	return func(v *topology.Vhost) {
		v.Bindings = slices.DeleteFunc(v.Bindings, func(b topology.Binding) bool { return b.Source == exchange })
	}
}

// faultsIn audits a vhost without users and counts.
func faultsIn(v topology.Vhost) []audit.Finding { return audit.Vhost(v, audit.Known{}) }

// rulesOf lists the rules of the findings, each once.
func rulesOf(findings []audit.Finding) []string {
	found := []string{}
	for _, f := range findings {
		found = append(found, f.Rule)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func expectRules(t *testing.T, findings []audit.Finding, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := rulesOf(findings); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q: %+v", got, want, findings)
	}
}
