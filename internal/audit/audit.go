package audit

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Vhost returns every fault in the dead-letter graph of a vhost, the errors first.
func Vhost(vhost topology.Vhost) []Finding { return newGraph(vhost).findings() }

func (g graph) findings() []Finding {
	var findings []Finding
	for _, r := range rules {
		for _, f := range r.find(g) {
			f.Rule, f.Severity = r.id, r.severity
			if f.queues == nil && f.Object.Kind == "queue" {
				f.queues = []string{f.Object.Name}
			}
			findings = append(findings, f)
		}
	}
	return sorted(findings)
}

// Pipeline returns the faults that concern a pipeline: those on any way that a message of one of its
// work queues, of its own queues or of its exchanges may take. The vhost contains the pipeline; a
// caller that plans one merges what it is going to create.
func Pipeline(vhost topology.Vhost, name pipeline.Names, workQueues []string) []Finding {
	g := newGraph(vhost)
	reachable := g.reachable(name, workQueues)
	return slices.DeleteFunc(g.findings(), func(f Finding) bool {
		if f.Object.Kind == "pipeline" {
			return f.Object.Name != string(name)
		}
		return !slices.ContainsFunc(f.queues, func(queue string) bool { return reachable[queue] })
	})
}

// DelayedExchange returns the faults that concern a delayed exchange: those of its own objects, and of others where they hold up
// or pass by its messages. The vhost contains it, as for [Pipeline].
func DelayedExchange(vhost topology.Vhost, name delayed.Names) []Finding {
	return slices.DeleteFunc(newGraph(vhost).findings(), func(f Finding) bool {
		if f.Object.Kind == "delayed_exchange" {
			return f.Object.Name != string(name)
		}
		return !slices.ContainsFunc(f.queues, name.OwnsQueue)
	})
}

// reachable collects the queues that a message of the pipeline can come to.
func (g graph) reachable(n pipeline.Names, workQueues []string) map[string]bool {
	var next []string
	for name := range g.vhost.Queues {
		if n.OwnsQueue(name) {
			next = append(next, name)
		}
	}
	next = append(next, workQueues...)
	for _, exchange := range n.Exchanges() {
		to := g.route(exchange, unknown)
		next = slices.AppendSeq(next, maps.Keys(to.sure))
		next = slices.AppendSeq(next, maps.Keys(to.possible))
	}
	reached := map[string]bool{}
	for ; len(next) > 0; next = next[1:] {
		if !reached[next[0]] {
			reached[next[0]] = true
			next = append(next, g.targets(next[0])...)
		}
	}
	return reached
}
