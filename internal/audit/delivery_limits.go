package audit

import (
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// limitedWithoutExchange lists quorum queues that drop a message at their delivery limit, either those
// with an explicit limit or those with the default one. Parking queues have a rule of their own.
func (g graph) limitedWithoutExchange(wantExplicit bool) []string {
	var found []string
	for _, name := range g.classicAndQuorum() {
		_, has := g.settings[name].Text("dead-letter-exchange")
		limit, explicit, limited := g.settings[name].DeliveryLimit()
		if limited && !has && explicit == wantExplicit && limit < topology.UnreachableDeliveryLimit && !g.parking[name] {
			found = append(found, name)
		}
	}
	return found
}

// droppedAtLimit finds delivery limits that somebody chose, on queues without a dead-letter exchange.
func droppedAtLimit(g graph) []Finding {
	var found []Finding
	for _, group := range g.byOrigin(g.limitedWithoutExchange(true), "delivery-limit") {
		limit, _, _ := g.settings[group.queues[0]].DeliveryLimit()
		found = append(found, group.finding(fmt.Sprintf(limitDrops, limit, queueList(group.queues)), limitDropsRemedy))
	}
	return found
}

// droppedAtDefaultLimit is one finding for all queues: nobody chose that limit for any of them.
func droppedAtDefaultLimit(g graph) []Finding {
	names := g.limitedWithoutExchange(false)
	if len(names) == 0 {
		return nil
	}
	limit, _, _ := g.settings[names[0]].DeliveryLimit()
	return []Finding{{
		Object: Object{"vhost", g.vhost.Name}, queues: names,
		Message: fmt.Sprintf(defaultLimit, limit, queueList(names)), Remedy: defaultLimitRemedy,
	}}
}

// negativeLimits finds limits that mean "none" on newer brokers only.
func negativeLimits(g graph) []Finding {
	if !g.vhost.Version.Before(4, 0) {
		return nil
	}
	var queues []string
	for _, name := range g.classicAndQuorum() {
		if limit, explicit, _ := g.settings[name].DeliveryLimit(); explicit && limit < 0 {
			queues = append(queues, name)
		}
	}
	var found []Finding
	for _, group := range g.byOrigin(queues, "delivery-limit") {
		found = append(found, group.finding(fmt.Sprintf(negativeLimit, queueList(group.queues)), negativeLimitRemedy))
	}
	return found
}
