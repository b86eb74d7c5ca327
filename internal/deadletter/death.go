package deadletter

import amqp "github.com/rabbitmq/amqp091-go"

// death is the newest entry of x-death; its queue is "" if there is none.
type death struct {
	queue, reason, exchange, key string
}

// newestDeath reads x-death[0]: newer entries come first. The broker writes it whenever it
// dead-letters a message, but whoever publishes to the dead-letter exchange writes what they like:
// most often a copy of the headers that he was delivered.
func newestDeath(h amqp.Table) death {
	deaths, _ := h[headerDeath].([]any)
	if len(deaths) == 0 {
		return death{}
	}
	entry, _ := deaths[0].(amqp.Table)
	d := death{queue: queueName(entry["queue"])}
	d.reason, _ = shortString(entry["reason"])
	d.exchange, _ = shortString(entry["exchange"])
	if keys, _ := entry["routing-keys"].([]any); len(keys) > 0 {
		d.key, _ = shortString(keys[0])
	}
	return d
}

// isDeath reports whether the entry says how the message came here. No header of a copy differs from
// the broker's own, x-first-death-* and x-last-death-* included.
//
// A queue that is not configured may be a work queue that was attached after this worker started; or
// one that the message passed earlier, in a consumer's copy. It is taken for the latter if
// retry-queue names a work queue. Mistaken, a message that an application moved from that work queue
// to the new one goes back to the former, and its count continues. Mistaken the other way, each copy
// would go to a queue that is none of ours with a count of 1, and round indefinitely.
func (p *Pipeline) isDeath(d death, h amqp.Table) bool {
	switch {
	case d.queue == "" || p.Names.OwnsQueue(d.queue):
		return false
	case p.hasWorkQueue(d.queue) || p.areOfAnother(h):
		return true
	}
	return !p.hasWorkQueue(queueName(h[HeaderQueue]))
}
