package audit

import "fmt"

// limitedWithoutExchange lists quorum queues that drop a message at their delivery limit. Parking
// queues have a rule of their own.
func (g graph) limitedWithoutExchange(wantExplicit bool) []string {
	var found []string
	for _, name := range g.mortal() {
		_, has := g.settings[name].Text("dead-letter-exchange")
		limit, explicit, limited := g.settings[name].DeliveryLimit()
		if limited && !has && explicit == wantExplicit && limit < unreachableDeliveryLimit && !g.parking[name] {
			found = append(found, name)
		}
	}
	return found
}

func droppedAtLimit(g graph) []Finding {
	var found []Finding
	for _, group := range g.byOrigin(g.limitedWithoutExchange(true), "delivery-limit") {
		limit, _, _ := g.settings[group.queues[0]].DeliveryLimit()
		found = append(found, group.finding(
			fmt.Sprintf("There is a delivery limit of %d for %s, and no dead-letter exchange: a message that is returned more often is dropped.", limit, queuesNamed(group.queues)),
			"Set a dead-letter exchange as well."))
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
		Message: fmt.Sprintf("From RabbitMQ 4.0 on, quorum queues have a delivery limit of %d unless another one is set. Without a dead-letter exchange, a message that is returned more often is dropped: that goes for %s.", limit, queuesNamed(names)),
		Remedy:  "Give the queues a dead-letter exchange, by one policy for all quorum queues if you like.",
	}}
}

// negativeLimits finds limits that mean "none" on newer brokers only.
func negativeLimits(g graph) []Finding {
	if !g.vhost.Version.Before(4, 0) {
		return nil
	}
	var queues []string
	for _, name := range g.mortal() {
		if limit, explicit, _ := g.settings[name].DeliveryLimit(); explicit && limit < 0 {
			queues = append(queues, name)
		}
	}
	var found []Finding
	for _, group := range g.byOrigin(queues, "delivery-limit") {
		found = append(found, group.finding(
			fmt.Sprintf("The delivery limit of %s is negative, which means no limit from RabbitMQ 4.0 on only. Before, every message that is returned once has exceeded it.", queuesNamed(group.queues)),
			"Leave the limit out, or set a large number if the broker is going to be upgraded."))
	}
	return found
}
