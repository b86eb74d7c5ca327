package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// pipelines lists the retry pipelines in the vhost. A pipeline is recognized by its definition, or, if
// that is missing, by the exchange that returns messages with its alternate exchange.
func (g graph) pipelines() []pipeline.Names {
	found := pipeline.Pipelines(g.vhost.Topology)
	for exchange := range g.vhost.Exchanges {
		name, isReturn := strings.CutSuffix(exchange, pipeline.Names("").ReturnExchange())
		if isReturn && g.alternates[exchange] == pipeline.Names(name).DeadLetterExchange() {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	var names []pipeline.Names
	for _, name := range slices.Compact(found) {
		names = append(names, pipeline.Names(name))
	}
	return names
}

// bound reports whether a binding certainly brings a message with the key from the exchange to the queue.
func (g graph) bound(exchange, queue string, k key) bool {
	return slices.ContainsFunc(g.bindings[exchange], func(b topology.Binding) bool {
		return !b.ToExchange && b.Destination == queue && matches(g.vhost.Exchanges[exchange], b, k) == yes
	})
}

// unboundInboxes finds pipelines that retry nothing.
func unboundInboxes(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		if !g.bound(n.DeadLetterExchange(), n.Inbox(), unknown) {
			found = append(found, onPipeline(n, fmt.Sprintf(inboxUnbound, n.Inbox(), n.DeadLetterExchange(), n), runApply))
		}
	}
	return found
}

// unboundFailedQueues finds pipelines that have nowhere to park messages.
func unboundFailedQueues(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		if !g.bound(n.FailedExchange(), n.FailedQueue(), unknown) {
			found = append(found, onPipeline(n, fmt.Sprintf(failedUnbound, n.FailedQueue(), n.FailedExchange(), n), runApply))
		}
	}
	return found
}

// unboundDelays finds retry queues that no message comes to.
func unboundDelays(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		for _, queue := range slices.Sorted(maps.Keys(g.vhost.Queues)) {
			delay, isRetry := n.DelayOf(queue)
			if isRetry && !g.bound(n.RetryExchange(), queue, known(pipeline.DelayKey(delay))) {
				found = append(found, onQueue(queue,
					fmt.Sprintf(delayUnbound, queue, n.RetryExchange(), pipeline.DelayKey(delay)), runApply))
			}
		}
	}
	return found
}

// attached lists the queues that dead-letter to the pipeline, other than its own.
func (g graph) attached(n pipeline.Names) []string {
	return slices.DeleteFunc(g.deadLettering(), func(queue string) bool {
		exchange, _ := g.settings[queue].Text("dead-letter-exchange")
		return exchange != n.DeadLetterExchange() || n.OwnsQueue(queue)
	})
}

// unboundReturns finds work queues to which messages come back only through the sidecar.
func unboundReturns(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		for _, queue := range g.attached(n) {
			k := known(pipeline.ReturnKey(queue))
			if !g.bound(n.ReturnExchange(), queue, k) && !g.route(n.ReturnExchange(), k).nowhere {
				found = append(found, onQueue(queue, fmt.Sprintf(returnUnbound, queue, n, n.ReturnExchange(), k), returnUnboundRemedy))
			}
		}
	}
	return found
}

// lostReturns finds work queues to which messages do not come back.
func lostReturns(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		for _, queue := range g.attached(n) {
			k := known(pipeline.ReturnKey(queue))
			if g.route(n.ReturnExchange(), k).nowhere {
				found = append(found, onQueue(queue, fmt.Sprintf(returnNowhere, queue, n, n.ReturnExchange(), k), runApply))
			}
		}
	}
	return found
}

// unreadableDefinitions finds pipelines that cannot be read back from the broker. An inbox that is not bound has
// a finding of its own.
func unreadableDefinitions(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		_, err := pipeline.FindDefinition(n, g.vhost.Topology)
		if err != nil && g.bound(n.DeadLetterExchange(), n.Inbox(), unknown) {
			found = append(found, onPipeline(n, fmt.Sprintf(definitionUnreadable, n, err), definitionUnreadableRemedy))
		}
	}
	return found
}
