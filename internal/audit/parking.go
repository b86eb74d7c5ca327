package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// findParking finds the queues that keep dead letters. They receive dead letters, and have no dead-letter exchange or one
// that leads back to them: a failed queue of ours has, and so has a parking queue under a policy for all queues. If a
// queue gets messages only after a delay and has other sources too, consumers work on it, so it does not count.
func (g graph) findParking() {
	failedQueues := g.failedQueues()
	deadLetterExchanges := g.deadLetterExchanges()
	for through, sources := range g.sources {
		for _, target := range g.targets(through) {
			receives := len(sources) > 1 || sources[0] != target
			keeps := g.rests(target) || failedQueues[target]
			if receives && keeps && (!through.delays || !g.hasOtherWaysIn(target, deadLetterExchanges)) {
				g.parking[target] = true
			}
		}
	}
	for queue, keeps := range failedQueues { // perhaps no message has arrived yet, except by a replay
		g.parking[queue] = g.parking[queue] || keeps
	}
	for _, queue := range g.failedQueuesOfWorkQueues() {
		g.parking[queue] = g.parking[queue] || g.rests(queue)
	}
	maps.DeleteFunc(g.parking, func(queue string, _ bool) bool { return !g.lasting(queue) })
}

// deadLetterExchanges returns the exchanges that queues dead-letter to. It leaves out the deliver exchanges of delayed
// exchanges, because consumers work on the queues behind them.
func (g graph) deadLetterExchanges() map[string]bool {
	exchanges := map[string]bool{}
	for through := range g.sources {
		exchanges[through.exchange] = true
	}
	for _, d := range g.delayed {
		delete(exchanges, d.DeliverExchange())
	}
	return exchanges
}

// failedQueuesOfWorkQueues returns the queues that pipelines declare for work queues' failed messages, and the queues
// that get such messages.
func (g graph) failedQueuesOfWorkQueues() []string {
	found := where(g.classicOrQuorum, func(queue string) bool {
		_, declared := g.declaresFailedQueue(queue)
		return declared
	})
	for _, p := range g.pipelines {
		found = append(found, g.parkedIn(p.Names)...)
	}
	return found
}

// rests reports whether the broker drops a dead letter of the queue or returns it there.
func (g graph) rests(queue string) bool {
	exchange, next, goesOn := g.afterDeath(queue, unknown)
	return !goesOn || g.route(exchange, next).queues[queue]
}

// failedQueues returns the failed queues of pipelines and the unrouted queues of delayed exchanges. The value says
// whether rejected messages come back to the queue.
func (g graph) failedQueues() map[string]bool {
	found := map[string]bool{}
	for _, p := range g.pipelines {
		exchange, _ := g.settings[p.FailedQueue()].Text("dead-letter-exchange")
		found[p.FailedQueue()] = exchange == p.FailedExchange()
	}
	for _, d := range g.delayed {
		exchange, _ := g.settings[d.UnroutedQueue()].Text("dead-letter-exchange")
		found[d.UnroutedQueue()] = exchange == d.UnroutedExchange()
	}
	return found
}

// hasOtherWaysIn reports whether the queue gets messages from elsewhere than these exchanges. A queue without bindings
// counts, because applications publish to it by name. A queue whose only binding is a return binding counts too,
// because the pipeline got its messages from that queue.
func (g graph) hasOtherWaysIn(queue string, exchanges map[string]bool) bool {
	ways := slices.DeleteFunc(slices.Clone(g.waysIn[queue]), func(b topology.Binding) bool {
		_, returned := pipeline.ReturnedBy(b)
		return returned
	})
	return len(ways) == 0 || slices.ContainsFunc(ways, func(b topology.Binding) bool { return !exchanges[b.Source] })
}

// parkingGroups groups the parking queues that a setting empties, by the origin of the setting. Delayed exchanges have
// their own rule for unrouted queues.
func (g graph) parkingGroups(setting string, empties func(topology.Settings) bool) []Finding {
	return g.byOrigin(where(g.classicOrQuorum, func(name string) bool {
		return g.parking[name] && !g.isOfDelayedExchange(name) && empties(g.settings[name])
	}), setting)
}

// emptiedAfter returns a rule for a setting that empties a parking queue after a time.
func emptiedAfter(setting, message, remedy string) func(graph, func(Finding)) {
	isSet := func(s topology.Settings) bool {
		_, has := s.Number(setting)
		return has
	}
	return func(g graph, report func(Finding)) {
		for _, on := range g.parkingGroups(setting, isSet) {
			after, _ := g.settings[on.queues[0]].Number(setting)
			f := on.says(fmt.Sprintf(message, queueList(on.queues), pipeline.FormatMilliseconds(after)), remedy)
			if after == 0 {
				f.Severity = Error
			}
			report(f)
		}
	}
}

func limitedParking(g graph, report func(Finding)) {
	for _, on := range g.parkingGroups("max-length", dropsOldest) {
		report(on.says(fmt.Sprintf(parkingLength, queueList(on.queues)), parkingLengthRemedy))
	}
}

func dropsOldest(s topology.Settings) bool {
	overflow, _ := s.Text("overflow")
	return s.Limited() && overflow != "reject-publish" && overflow != "reject-publish-dlx"
}

func parkingWithDeliveryLimit(g graph, report func(Finding)) {
	for _, on := range g.parkingGroups("delivery-limit", canReachLimit) {
		limit, _, _ := g.settings[on.queues[0]].DeliveryLimit()
		report(on.says(
			fmt.Sprintf(parkingLimit, queueList(on.queues), limit),
			fmt.Sprintf(parkingLimitRemedy, topology.UnreachableDeliveryLimit)))
	}
}

func canReachLimit(s topology.Settings) bool {
	limit, _, limited := s.DeliveryLimit()
	return limited && limit < topology.UnreachableDeliveryLimit
}

// expiringRetryQueues finds queues that can expire while messages wait for their TTL.
func expiringRetryQueues(g graph, report func(Finding)) {
	for _, name := range g.dying {
		ttl, waits := g.settings[name].Number("message-ttl")
		expires, has := g.settings[name].Number("expires")
		if !waits || !has || !g.lasting(name) || g.isOfDelayedExchange(name) {
			continue
		}
		message := fmt.Sprintf(retryQueueExpires, pipeline.FormatMilliseconds(ttl), name, pipeline.FormatMilliseconds(expires))
		if expires <= ttl {
			message += retryQueueExpiresFirst
		}
		report(about("queue", name).says(message, retryQueueExpiresRemedy))
	}
}
