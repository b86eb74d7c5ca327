package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// findPipelines recognizes a pipeline by its definition. If that is missing, it looks for the failed queue, and at the
// alternate exchange of the return exchange. That is the dead-letter exchange with a worker, and the failed exchange
// without one.
func (g graph) findPipelines() []pipeline.Names {
	found := pipeline.Pipelines(g.vhost.Topology)
	for exchange := range g.vhost.Exchanges {
		name, isReturn := strings.CutSuffix(exchange, pipeline.Names("").ReturnExchange())
		n, alternate := pipeline.Names(name), g.alternates[exchange]
		_, parks := g.vhost.Queues[n.FailedQueue()]
		if isReturn && parks && (alternate == n.DeadLetterExchange() || alternate == n.FailedExchange()) {
			found = append(found, name)
		}
	}
	var names []pipeline.Names
	for _, name := range topology.Distinct(found) {
		names = append(names, pipeline.Names(name))
	}
	return names
}

// read returns the pipeline from its definition. If that is unreadable, the exchanges determine the engine.
func (g graph) read(n pipeline.Names) (p pipeline.Pipeline, defined bool) {
	if p, defined = g.defined[n]; defined {
		return p, true
	}
	p = pipeline.Pipeline{Name: string(n)}
	p.Engine = pipeline.EngineByExchanges(n, g.alternates[n.ReturnExchange()], g.vhost.Exchanges[n.RetryExchange()])
	return p, false
}

// bound reports whether a binding certainly routes a message with the key from the exchange to the queue.
func (g graph) bound(exchange, queue string, k key) bool {
	return slices.ContainsFunc(g.bindings[exchange], func(b topology.Binding) bool {
		return !b.ToExchange && b.Destination == queue && matches(g.vhost.Exchanges[exchange], b, k) == yes
	})
}

// unboundInboxes finds pipelines whose inbox is not bound, so that they retry nothing.
func unboundInboxes(g graph, report func(Finding)) {
	for _, n := range g.pipelines {
		if p, _ := g.read(n); p.HasWorker() && !g.bound(n.DeadLetterExchange(), n.Inbox(), unknown) {
			report(onPipeline(n, fmt.Sprintf(inboxUnbound, n.Inbox(), n.DeadLetterExchange(), n), runApply))
		}
	}
}

// unservedInboxes finds pipelines and delayed exchanges whose messages wait for a sidecar.
func unservedInboxes(g graph, report func(Finding)) {
	for _, n := range g.pipelines {
		if p, _ := g.read(n); p.HasWorker() && g.known.Unserved[n.Inbox()] > 0 {
			report(onPipeline(n, fmt.Sprintf(inboxUnserved, n.Inbox(), g.known.Unserved[n.Inbox()]), inboxUnservedRemedy))
		}
	}
	for _, d := range g.delayed {
		if g.known.Unserved[d.Inbox()] > 0 {
			report(d.finding(fmt.Sprintf(inboxUnserved, d.Inbox(), g.known.Unserved[d.Inbox()]), inboxUnservedRemedy))
		}
	}
}

// unboundFailedQueues finds pipelines that cannot park messages.
func unboundFailedQueues(g graph, report func(Finding)) {
	for _, n := range g.pipelines {
		if !g.bound(n.FailedExchange(), n.FailedQueue(), unknown) {
			report(onPipeline(n, fmt.Sprintf(failedUnbound, n.FailedQueue(), n.FailedExchange(), n), runApply))
		}
	}
}

// unboundFailedQueuesOfWorkQueues finds declared failed queues of work queues that get no messages.
func unboundFailedQueuesOfWorkQueues(g graph, report func(Finding)) {
	for _, queue := range g.classicAndQuorum() {
		n, declared := g.declaresFailedQueue(queue)
		if declared && !g.parksIn(n, queue) {
			report(onQueue(queue, fmt.Sprintf(failedQueueUnbound, queue, n.FailedRouteExchange(), n), runApply))
		}
	}
}

// declaresFailedQueue returns the pipeline that declares a failed queue of work queues. The pipeline's policy shows
// that, because it does not cover released queues.
func (g graph) declaresFailedQueue(queue string) (pipeline.Names, bool) {
	for _, policy := range g.settings[queue].Policies {
		if n, covers := pipeline.OwnerOfFailedQueues(policy.Name); covers {
			return n, true
		}
	}
	return "", false
}

// parksIn reports whether failed messages of one of the pipeline's work queues go to the queue.
func (g graph) parksIn(n pipeline.Names, queue string) bool {
	return slices.ContainsFunc(g.bindings[n.FailedRouteExchange()], func(b topology.Binding) bool {
		return n.Parks(b) && b.Destination == queue
	})
}

// unboundDelays finds retry queues that get no messages.
func unboundDelays(g graph, report func(Finding)) {
	for _, n := range g.pipelines {
		p, defined := g.read(n)
		for _, queue := range g.classicOrQuorum {
			delay, isRetry := n.DelayOf(queue)
			switch {
			case !isRetry:
			case p.HasWorker() && !g.bound(n.RetryExchange(), queue, known(pipeline.DelayKey(delay))):
				report(onQueue(queue, fmt.Sprintf(delayUnbound, queue, n.RetryExchange(), pipeline.DelayKey(delay)), runApply))
			case defined && !p.HasWorker() && slices.Contains(p.Waits(), delay) && !g.letsRejectedIn(n, delay):
				report(onQueue(queue, fmt.Sprintf(rejectedUnbound, queue, n.RetryExchange(), n), runApply))
			}
		}
	}
}

// letsRejectedIn reports whether rejected messages reach the retry queue of the delay.
func (g graph) letsRejectedIn(n pipeline.Names, delay time.Duration) bool {
	return slices.ContainsFunc(g.bindings[n.RetryExchange()], n.RejectedBinding(delay).Equal)
}

// attached lists the queues that dead-letter to the pipeline for a retry, except its own queues. If work queues delay
// messages themselves, a queue that only parks in the failed queue does not count.
func (g graph) attached(n pipeline.Names) []string {
	p, _ := g.read(n)
	return slices.DeleteFunc(g.deadLettering(), func(queue string) bool {
		exchange, _ := g.settings[queue].Text("dead-letter-exchange")
		_, delays := g.settings[queue].Text("delayed-retry-type")
		parks := (exchange == n.FailedExchange() || exchange == n.FailedRouteExchange()) && !delays
		return !p.DeadLettersTo(exchange) || n.OwnsQueue(queue) || parks
	})
}

// ineffectiveRetries finds work queues that the broker does not retry as their pipeline says. An argument, a policy or
// an operator policy sets another value.
func ineffectiveRetries(g graph, report func(Finding)) {
	for n, p := range g.defined {
		for _, queue := range g.returnedTo(p) {
			if different := g.otherThan(p.BrokerKeys(queue), queue); len(different) > 0 {
				report(onQueue(queue, fmt.Sprintf(retryIneffective, queue, n, strings.Join(different, ", ")), retryIneffectiveRemedy))
			}
		}
	}
}

// returnedTo lists the work queues that dead-letter to the pipeline. A queue that another pipeline takes over does not.
func (g graph) returnedTo(p pipeline.Pipeline) []string {
	var queues []string
	for _, b := range g.bindings[p.Names().ReturnExchange()] {
		exchange, _ := g.settings[b.Destination].Text("dead-letter-exchange")
		if pipeline.AttachedBy(b) == p.Name && p.DeadLettersTo(exchange) {
			queues = append(queues, b.Destination)
		}
	}
	return topology.Distinct(queues)
}

// otherThan lists the keys whose value in force on a queue differs.
func (g graph) otherThan(keys topology.Arguments, queue string) []string {
	var different []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if value := inForce(g.settings[queue], key); value != keys[key] {
			different = append(different, fmt.Sprintf("%s is %v instead of %v", key, cmp.Or(value, any("not set")), keys[key]))
		}
	}
	return different
}

// unboundReturns finds work queues without a return binding whose messages take another route.
func unboundReturns(g graph, report func(Finding)) {
	for _, n := range g.pipelines {
		p, _ := g.read(n)
		for _, queue := range g.attached(n) {
			k := known(pipeline.ReturnKey(queue))
			if !g.bound(n.ReturnExchange(), queue, k) && !g.route(n.ReturnExchange(), k).nowhere {
				message := fmt.Sprintf(returnUnbound, queue, n, n.ReturnExchange(), k) + p.Facts().Unbound
				report(onQueue(queue, message, returnUnboundRemedy))
			}
		}
	}
}

// lostReturns finds work queues whose messages cannot return.
func lostReturns(g graph, report func(Finding)) {
	for _, n := range g.pipelines {
		for _, queue := range g.attached(n) {
			k := known(pipeline.ReturnKey(queue))
			if g.route(n.ReturnExchange(), k).nowhere {
				report(onQueue(queue, fmt.Sprintf(returnNowhere, queue, n, n.ReturnExchange(), k), runApply))
			}
		}
	}
}

// unreadableDefinitions finds pipelines whose definition cannot be read. Another rule finds failed queues that are not
// bound.
func unreadableDefinitions(g graph, report func(Finding)) {
	for _, n := range g.pipelines {
		_, err := n.DefinitionPlace().Find(g.vhost.Topology)
		if err != nil && g.bound(n.FailedExchange(), n.FailedQueue(), unknown) {
			report(onPipeline(n, fmt.Sprintf(definitionUnreadable, n, err), definitionUnreadableRemedy))
		}
	}
}
