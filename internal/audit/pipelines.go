package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// pipelines lists the retry pipelines in the vhost. A pipeline is known by its definition, or, if
// that was taken away, by the exchange that returns messages with its alternate exchange.
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

func (g graph) bound(exchange, queue string, k key) bool {
	return slices.ContainsFunc(g.bindings[exchange], func(b topology.Binding) bool {
		return !b.ToExchange && b.Destination == queue && matches(g.vhost.Exchanges[exchange], b, k) == yes
	})
}

func onPipeline(n pipeline.Names, message, remedy string) Finding {
	return Finding{Object: Object{"pipeline", string(n)}, Message: message, Remedy: remedy}
}

const applyAgain = "Apply the pipeline again: the plan shows what is missing."

func unboundInboxes(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		if !g.bound(n.DeadLetterExchange(), n.Inbox(), unknown) {
			found = append(found, onPipeline(n,
				fmt.Sprintf("Queue %q is not bound to %q: nothing that is rejected in pipeline %q is retried. It goes to the failed queue at once, as long as the alternate exchange leads there.", n.Inbox(), n.DeadLetterExchange(), n), applyAgain))
		}
	}
	return found
}

func unboundFailedQueues(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		if !g.bound(n.FailedExchange(), n.FailedQueue(), unknown) {
			found = append(found, onPipeline(n,
				fmt.Sprintf("Queue %q is not bound to %q: what is not retried any more in pipeline %q has nowhere to go. The sidecar holds it back, and what the broker itself parks is dropped or held.", n.FailedQueue(), n.FailedExchange(), n), applyAgain))
		}
	}
	return found
}

func unboundDelays(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		for _, queue := range slices.Sorted(maps.Keys(g.vhost.Queues)) {
			delay, isRetry := n.DelayOf(queue)
			if isRetry && !g.bound(n.RetryExchange(), queue, known(pipeline.DelayKey(delay))) {
				found = append(found, onQueue(queue,
					fmt.Sprintf("Retry queue %q is not bound to %q with the key %q: messages that should wait there wait in another retry queue, or fail if there is none.", queue, n.RetryExchange(), pipeline.DelayKey(delay)), applyAgain))
			}
		}
	}
	return found
}
