package audit

import (
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// parkingGroups groups the parking queues that a setting empties by where that setting comes from.
func (g graph) parkingGroups(setting string, empties func(topology.Settings) bool) []group {
	return g.byOrigin(slices.DeleteFunc(g.parkingQueues(), func(name string) bool { return !empties(g.settings[name]) }), setting)
}

func expiringParking(g graph) []Finding {
	var found []Finding
	for _, group := range g.parkingGroups("expires", isSet("expires")) {
		expires, _ := g.settings[group.queues[0]].Number("expires")
		found = append(found, group.finding(
			fmt.Sprintf(parkingExpires, queueList(group.queues), pipeline.FormatMilliseconds(expires)), parkingExpiresRemedy))
	}
	return found
}

func parkingWithTTL(g graph) []Finding {
	var found []Finding
	for _, group := range g.parkingGroups("message-ttl", isSet("message-ttl")) {
		ttl, _ := g.settings[group.queues[0]].Number("message-ttl")
		found = append(found, group.finding(
			fmt.Sprintf(parkingTTL, queueList(group.queues), pipeline.FormatMilliseconds(ttl)), parkingTTLRemedy))
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
	for _, group := range g.parkingGroups("max-length", dropsOldest) {
		found = append(found, group.finding(fmt.Sprintf(parkingLength, queueList(group.queues)), parkingLengthRemedy))
	}
	return found
}

func dropsOldest(s topology.Settings) bool {
	overflow, _ := s.Text("overflow")
	return s.Limited() && overflow != "reject-publish" && overflow != "reject-publish-dlx"
}

func parkingWithDeliveryLimit(g graph) []Finding {
	var found []Finding
	for _, group := range g.parkingGroups("delivery-limit", canReachLimit) {
		limit, _, _ := g.settings[group.queues[0]].DeliveryLimit()
		found = append(found, group.finding(
			fmt.Sprintf(parkingLimit, queueList(group.queues), limit),
			fmt.Sprintf(parkingLimitRemedy, topology.UnreachableDeliveryLimit)))
	}
	return found
}

func canReachLimit(s topology.Settings) bool {
	limit, _, limited := s.DeliveryLimit()
	return limited && limit < topology.UnreachableDeliveryLimit
}

// expiringRetryQueues finds queues where messages wait for their TTL while nobody uses the queue.
func expiringRetryQueues(g graph) []Finding {
	var found []Finding
	for _, name := range g.deadLettering() {
		ttl, waits := g.settings[name].Number("message-ttl")
		expires, has := g.settings[name].Number("expires")
		if !waits || !has || !g.lasting(name) || g.isOfDelayedExchange(name) {
			continue
		}
		message := fmt.Sprintf(retryQueueExpires, pipeline.FormatMilliseconds(ttl), name, pipeline.FormatMilliseconds(expires))
		if expires <= ttl {
			message += retryQueueExpiresFirst
		}
		found = append(found, onQueue(name, message, retryQueueExpiresRemedy))
	}
	return found
}
