package audit

import (
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// emptied groups the parking queues that a setting empties by where that setting comes from.
func (g graph) emptied(setting string, concerned func(topology.Settings) bool) []group {
	return g.byOrigin(slices.DeleteFunc(g.parkingQueues(), func(name string) bool { return !concerned(g.settings[name]) }), setting)
}

func expiringParking(g graph) []Finding {
	var found []Finding
	for _, group := range g.emptied("expires", isSet("expires")) {
		expires, _ := g.settings[group.queues[0]].Number("expires")
		found = append(found, group.finding(
			fmt.Sprintf("Dead letters come to rest in %s: deleted with all of them when nobody has used it for %s (expires).", queuesNamed(group.queues), milliseconds(expires)),
			"Take expires away: by a policy of higher priority that does not set it, or by declaring the queue anew without the argument."))
	}
	return found
}

func parkingWithTTL(g graph) []Finding {
	var found []Finding
	for _, group := range g.emptied("message-ttl", isSet("message-ttl")) {
		ttl, _ := g.settings[group.queues[0]].Number("message-ttl")
		found = append(found, group.finding(
			fmt.Sprintf("Dead letters come to rest in %s, and each is deleted %s later (message-ttl).", queuesNamed(group.queues), milliseconds(ttl)),
			"If that is not how long they are meant to be kept, take message-ttl away, or set a dead-letter exchange. If it is, ignore this rule."))
	}
	return found
}

func isSet(setting string) func(topology.Settings) bool {
	return func(s topology.Settings) bool {
		_, has := s.Number(setting)
		return has
	}
}

func limitedParking(g graph) []Finding {
	var found []Finding
	for _, group := range g.emptied("max-length", dropsOldest) {
		found = append(found, group.finding(
			fmt.Sprintf("Dead letters come to rest in %s, and the oldest ones are deleted when it is full (max-length or max-length-bytes).", queuesNamed(group.queues)),
			"Take the limit away and watch the length instead, or set a dead-letter exchange."))
	}
	return found
}

func dropsOldest(s topology.Settings) bool {
	overflow, _ := s.Text("overflow")
	return s.Limited() && overflow != "reject-publish" && overflow != "reject-publish-dlx"
}

// unreachableDeliveryLimit is one that nobody reaches by looking at messages.
const unreachableDeliveryLimit = 1_000_000

func parkingWithDeliveryLimit(g graph) []Finding {
	var found []Finding
	for _, group := range g.emptied("delivery-limit", canReachLimit) {
		limit, _, _ := g.settings[group.queues[0]].DeliveryLimit()
		found = append(found, group.finding(
			fmt.Sprintf("Dead letters come to rest in %s with a delivery limit of %d: one that is returned more often is dropped. Looking at a message with a management tool returns it.", queuesNamed(group.queues), limit),
			fmt.Sprintf("Set delivery-limit to a number that is never reached, such as %d, or use a classic queue or a stream.", unreachableDeliveryLimit)))
	}
	return found
}

func canReachLimit(s topology.Settings) bool {
	limit, _, limited := s.DeliveryLimit()
	return limited && limit < unreachableDeliveryLimit
}

// expiringRetryQueues finds queues where messages wait for their TTL while nobody uses the queue.
func expiringRetryQueues(g graph) []Finding {
	var found []Finding
	for _, name := range g.deadLettering() {
		ttl, waits := g.settings[name].Number("message-ttl")
		expires, has := g.settings[name].Number("expires")
		if !waits || !has || !g.lasting(name) {
			continue
		}
		message := fmt.Sprintf("Messages wait %s in queue %q, and it is deleted with all of them when nobody has consumed from it or declared it for %s (expires). Publishing to it does not count as use.",
			milliseconds(ttl), name, milliseconds(expires))
		if expires <= ttl {
			message += " That is before the first of them is due."
		}
		found = append(found, onQueue(name, message, "Take expires away: a queue with nothing in it costs little."))
	}
	return found
}

func onQueue(name, message, remedy string) Finding {
	return Finding{Object: Object{"queue", name}, Message: message, Remedy: remedy}
}

func milliseconds(n int64) string { return pipeline.FormatMilliseconds(n) }
