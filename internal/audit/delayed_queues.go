package audit

import (
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// alteredDelayedQueues finds own queues of delayed exchanges that behave otherwise than they are made to.
func alteredDelayedQueues(g graph) []Finding {
	var found []Finding
	for _, d := range g.delayed {
		members, altered := map[Object][]string{}, map[Object][]alteration{}
		for _, queue := range g.ownQueues(d) {
			for _, a := range g.alterations(queue, d.expected.Queues[queue]) {
				members[a.origin] = append(members[a.origin], queue)
				altered[a.origin] = append(altered[a.origin], a)
			}
		}
		for _, group := range groupsOf(members) {
			var settings, effects []string
			for _, a := range altered[group.object] {
				settings, effects = append(settings, a.what), append(effects, a.effect)
			}
			remedy := delayedQueueRemedy
			if group.object.Kind == "queue" {
				remedy = delayedQueueOwn
			}
			found = append(found, group.finding(fmt.Sprintf(delayedQueueAltered, upperFirst(queueList(group.queues)), d.Names,
				strings.Join(distinct(settings), ", "), strings.Join(distinct(effects), " ")), remedy))
		}
	}
	return found
}

// alteration is a setting of an own queue that is another than it is made with, by whom, and what that does.
type alteration struct {
	origin       Object
	what, effect string
}

// alterations compares what is in force with what a queue is made with.
func (g graph) alterations(queue string, made topology.Queue) []alteration {
	s := g.settings[queue]
	if s.Type != made.Type {
		return []alteration{{Object{"queue", queue}, "type is " + s.Type, effectOfType}}
	}
	var found []alteration
	differ := func(key, effect string, inForce any) {
		what := key + " is not set"
		if inForce != nil {
			what = fmt.Sprintf("%s is %v", key, inForce)
		}
		found = append(found, alteration{origin(s, queue, key, inForce), what, effect})
	}
	for _, key := range []string{"dead-letter-exchange", "dead-letter-routing-key", "dead-letter-strategy", "overflow"} {
		var inForce any
		if text, has := s.Text(key); has {
			inForce = text
		}
		if inForce != made.Arguments["x-"+key] {
			differ(key, effectOfDeadLetter, inForce)
		}
	}
	for key, effect := range map[string]string{"message-ttl": effectOfTTL, "expires": effectOfExpires} {
		var inForce any
		if number, has := s.Number(key); has {
			inForce = number
		}
		if inForce != made.Arguments["x-"+key] {
			differ(key, effect, inForce)
		}
	}
	if number, has := s.Number("max-length"); has && number < topology.UnreachableLength {
		differ("max-length", effectOfLength, number)
	}
	if number, has := s.Number("max-length-bytes"); has {
		differ("max-length-bytes", effectOfLength, number)
	}
	least, _ := made.Arguments["x-delivery-limit"].(int64)
	if limit, _, limited := s.DeliveryLimit(); limited && limit < least {
		differ("delivery-limit", effectOfDeliveryLimit, limit)
	}
	return found
}

// origin is where the value of a setting that is in force comes from.
func origin(s topology.Settings, queue, key string, inForce any) Object {
	for kind, policies := range map[string][]topology.NamedPolicy{"operator_policy": s.Operator, "policy": s.Policies} {
		if inForce != nil && len(policies) > 0 && policies[0].Definition[key] == inForce {
			return Object{kind, policies[0].Name}
		}
	}
	return Object{"queue", queue}
}
