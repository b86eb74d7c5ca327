package audit

import (
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func expiringParking(g graph) []Finding {
	var found []Finding
	for _, name := range g.parkingQueues() {
		if expires, has := g.settings[name].Number("expires"); has {
			found = append(found, onQueue(name,
				fmt.Sprintf("Dead letters come to rest in queue %q, and it is deleted with all of them when nobody has used it for %s (expires).", name, milliseconds(expires)),
				"Take expires away from it: shield the queue with a policy of higher priority that does not set it, or declare it anew without the argument."))
		}
	}
	return found
}

func parkingWithTTL(g graph) []Finding {
	var found []Finding
	for _, name := range g.parkingQueues() {
		if ttl, has := g.settings[name].Number("message-ttl"); has {
			found = append(found, onQueue(name,
				fmt.Sprintf("Dead letters come to rest in queue %q, and each is deleted %s later (message-ttl).", name, milliseconds(ttl)),
				"If that is not how long they are meant to be kept, take message-ttl away, or give the queue a dead-letter exchange of its own. If it is, ignore this rule."))
		}
	}
	return found
}

func limitedParking(g graph) []Finding {
	var found []Finding
	for _, name := range g.parkingQueues() {
		overflow, _ := g.settings[name].Text("overflow")
		if g.settings[name].Limited() && overflow != "reject-publish" && overflow != "reject-publish-dlx" {
			found = append(found, onQueue(name,
				fmt.Sprintf("Dead letters come to rest in queue %q, and the oldest ones are deleted when it is full (max-length or max-length-bytes).", name),
				"Take the limit away and watch the queue's length instead, or give the queue a dead-letter exchange of its own."))
		}
	}
	return found
}

// unreachableDeliveryLimit is one that nobody reaches by looking at messages.
const unreachableDeliveryLimit = 1_000_000

func parkingWithDeliveryLimit(g graph) []Finding {
	var found []Finding
	for _, name := range g.parkingQueues() {
		if limit, _, limited := g.settings[name].DeliveryLimit(); limited && limit < unreachableDeliveryLimit {
			found = append(found, onQueue(name,
				fmt.Sprintf("Dead letters come to rest in the quorum queue %q, whose delivery limit is %d: one that is returned more often is dropped. Looking at a message with a management tool returns it.", name, limit),
				fmt.Sprintf("Set delivery-limit to a number that is never reached, such as %d, or make it a classic queue or a stream.", unreachableDeliveryLimit)))
		}
	}
	return found
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

func milliseconds(n int64) string { return topology.FormatMilliseconds(n) }
