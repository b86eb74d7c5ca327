package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// findPipelines recognizes a pipeline by its definition. If that is missing, it looks for the failed queue, and at the
// alternate exchange of the return exchange. That is the dead-letter exchange with a worker, and the failed exchange
// without one.
func (g graph) findPipelines() (all []retryPipeline) {
	found := pipeline.Pipelines(g.vhost.Topology)
	for exchange := range g.vhost.Exchanges {
		name, isReturn := strings.CutSuffix(exchange, pipeline.Names("").ReturnExchange())
		n, alternate := pipeline.Names(name), g.alternates[exchange]
		_, parks := g.vhost.Queues[n.FailedQueue()]
		if isReturn && parks && (alternate == n.DeadLetterExchange() || alternate == n.FailedExchange()) {
			found = append(found, name)
		}
	}
	for _, name := range topology.Distinct(found) {
		p, _, err := pipeline.Defined(name, "", g.vhost.Topology)
		if n := pipeline.Names(name); err != nil {
			engine := pipeline.EngineByExchanges(n, g.alternates[n.ReturnExchange()], g.vhost.Exchanges[n.RetryExchange()])
			p = pipeline.Pipeline{Name: name, Engine: engine}
		}
		all = append(all, retryPipeline{p.Names(), p, err == nil})
	}
	return all
}

// retryPipeline is a pipeline in the vhost. If its definition is unreadable, only its engine is known, from its exchanges.
type retryPipeline struct {
	pipeline.Names
	spec    pipeline.Pipeline
	defined bool
}

func (p retryPipeline) finding(message, remedy string) Finding {
	return about("pipeline", p.spec.Name).says(message, remedy)
}

// ofPipelines turns a check of one pipeline into a rule for all.
func ofPipelines(find func(g graph, p retryPipeline, report func(Finding))) func(graph, func(Finding)) {
	return func(g graph, report func(Finding)) {
		for _, p := range g.pipelines {
			find(g, p, report)
		}
	}
}

// bound reports whether a binding certainly routes a message with the key from the exchange to the queue.
func (g graph) bound(exchange, queue string, k key) bool {
	return slices.ContainsFunc(g.bindings[exchange], func(b topology.Binding) bool {
		return !b.ToExchange && b.Destination == queue && matches(g.vhost.Exchanges[exchange], b, k) == yes
	})
}

// unboundInboxes finds pipelines whose inbox is not bound, so that they retry nothing.
func unboundInboxes(g graph, p retryPipeline, report func(Finding)) {
	if p.spec.HasWorker() && !g.bound(p.DeadLetterExchange(), p.Inbox(), unknown) {
		report(p.finding(fmt.Sprintf(inboxUnbound, p.Inbox(), p.DeadLetterExchange(), p.Names), runApply))
	}
}

// unservedInboxes finds pipelines and delayed exchanges whose messages wait for a sidecar.
func unservedInboxes(g graph, report func(Finding)) {
	check := func(inbox string, finding func(message, remedy string) Finding) {
		if messages := g.known.Unserved[inbox]; messages > 0 {
			report(finding(fmt.Sprintf(inboxUnserved, inbox, messages), inboxUnservedRemedy))
		}
	}
	for _, p := range g.pipelines {
		if p.spec.HasWorker() {
			check(p.Inbox(), p.finding)
		}
	}
	for _, d := range g.delayed {
		check(d.Inbox(), d.finding)
	}
}

// unboundFailedQueues finds pipelines that cannot park messages.
func unboundFailedQueues(g graph, p retryPipeline, report func(Finding)) {
	if !g.bound(p.FailedExchange(), p.FailedQueue(), unknown) {
		report(p.finding(fmt.Sprintf(failedUnbound, p.FailedQueue(), p.FailedExchange(), p.Names), runApply))
	}
}

// unboundFailedQueuesOfWorkQueues finds declared failed queues of work queues that get no messages.
func unboundFailedQueuesOfWorkQueues(g graph, report func(Finding)) {
	for _, queue := range g.classicOrQuorum {
		n, declared := g.declaresFailedQueue(queue)
		if declared && !slices.Contains(g.parkedIn(n), queue) {
			report(about("queue", queue).says(fmt.Sprintf(failedQueueUnbound, queue, n.FailedRouteExchange(), n), runApply))
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

// parkedIn lists the queues that get failed messages of single work queues.
func (g graph) parkedIn(n pipeline.Names) (queues []string) {
	for _, b := range g.bindings[n.FailedRouteExchange()] {
		if n.Parks(b) {
			queues = append(queues, b.Destination)
		}
	}
	return queues
}

// unboundDelays finds retry queues that get no messages.
func unboundDelays(g graph, p retryPipeline, report func(Finding)) {
	for _, queue := range g.classicOrQuorum {
		delay, isRetry := p.DelayOf(queue)
		if !isRetry {
			continue
		}
		getsRejected := slices.ContainsFunc(g.bindings[p.RetryExchange()], p.RejectedBinding(delay).Equal)
		switch {
		case p.spec.HasWorker() && !g.bound(p.RetryExchange(), queue, known(pipeline.DelayKey(delay))):
			report(about("queue", queue).says(fmt.Sprintf(delayUnbound, queue, p.RetryExchange(), pipeline.DelayKey(delay)), runApply))
		case p.defined && !p.spec.HasWorker() && slices.Contains(p.spec.Waits(), delay) && !getsRejected:
			report(about("queue", queue).says(fmt.Sprintf(rejectedUnbound, queue, p.RetryExchange(), p.Names), runApply))
		}
	}
}

// attached lists the queues that dead-letter to the pipeline for a retry, except its own queues. If work queues delay
// messages themselves, a queue that only parks in the failed queue does not count.
func (g graph) attached(p retryPipeline) []string {
	return where(g.dying, func(queue string) bool {
		exchange, _ := g.settings[queue].Text("dead-letter-exchange")
		_, delays := g.settings[queue].Text("delayed-retry-type")
		parks := (exchange == p.FailedExchange() || exchange == p.FailedRouteExchange()) && !delays
		return p.spec.DeadLettersTo(exchange) && !p.OwnsQueue(queue) && !parks
	})
}

// ineffectiveRetries finds work queues that the broker does not retry as their pipeline says. An argument, a policy or
// an operator policy sets another value.
func ineffectiveRetries(g graph, p retryPipeline, report func(Finding)) {
	for _, queue := range g.returnedTo(p) {
		if different := g.otherThan(p.spec.BrokerKeys(queue), queue); len(different) > 0 {
			report(about("queue", queue).says(fmt.Sprintf(retryIneffective, queue, p.Names, strings.Join(different, ", ")), retryIneffectiveRemedy))
		}
	}
}

// returnedTo lists the work queues that dead-letter to a pipeline with a definition. A queue that another pipeline takes
// over does not.
func (g graph) returnedTo(p retryPipeline) []string {
	var queues []string
	for _, b := range g.bindings[p.ReturnExchange()] {
		exchange, _ := g.settings[b.Destination].Text("dead-letter-exchange")
		if p.defined && pipeline.AttachedBy(b) == p.spec.Name && p.spec.DeadLettersTo(exchange) {
			queues = append(queues, b.Destination)
		}
	}
	return topology.Distinct(queues)
}

// otherThan lists the keys whose value in force on a queue differs.
func (g graph) otherThan(keys topology.Arguments, queue string) []string {
	var different []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if value := g.settings[queue].InForce(key); value != keys[key] {
			different = append(different, fmt.Sprintf("%s is %v instead of %v", key, cmp.Or(value, any("not set")), keys[key]))
		}
	}
	return different
}

// unboundReturns finds work queues without a return binding whose messages take another route.
func unboundReturns(g graph, p retryPipeline, report func(Finding)) {
	for _, queue := range g.attached(p) {
		k := known(pipeline.ReturnKey(queue))
		if !g.bound(p.ReturnExchange(), queue, k) && !g.route(p.ReturnExchange(), k).nowhere {
			message := fmt.Sprintf(returnUnbound, queue, p.Names, p.ReturnExchange(), k) + p.spec.Facts().Unbound
			report(about("queue", queue).says(message, returnUnboundRemedy))
		}
	}
}

// lostReturns finds work queues whose messages cannot return.
func lostReturns(g graph, p retryPipeline, report func(Finding)) {
	for _, queue := range g.attached(p) {
		k := known(pipeline.ReturnKey(queue))
		if g.route(p.ReturnExchange(), k).nowhere {
			report(about("queue", queue).says(fmt.Sprintf(returnNowhere, queue, p.Names, p.ReturnExchange(), k), runApply))
		}
	}
}

// unreadableDefinitions finds pipelines whose definition cannot be read. Another rule finds failed queues that are not
// bound.
func unreadableDefinitions(g graph, p retryPipeline, report func(Finding)) {
	_, err := p.DefinitionPlace().Find(g.vhost.Topology)
	if err != nil && g.bound(p.FailedExchange(), p.FailedQueue(), unknown) {
		report(p.finding(fmt.Sprintf(definitionUnreadable, p.Names, err), definitionUnreadableRemedy))
	}
}
