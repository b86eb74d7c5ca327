package audit

import (
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// alteredDelayedQueues finds own queues of delayed exchanges whose behaviour was changed.
func alteredDelayedQueues(g graph, d delayedExchange, report func(Finding)) {
	altered := map[Object][]alteration{}
	for _, queue := range g.ownQueues(d) {
		for _, a := range g.alterations(queue, d.expected.Queues[queue]) {
			altered[a.origin] = append(altered[a.origin], a)
		}
	}
	for origin, alterations := range altered {
		var queues, settings, effects []string
		for _, a := range alterations {
			queues, settings, effects = append(queues, a.queue), append(settings, a.what), append(effects, a.effect)
		}
		remedy := delayedQueueRemedy
		if origin.Kind == "queue" {
			remedy = delayedQueueOwn
		}
		on := about(origin.Kind, origin.Name, topology.Distinct(queues)...)
		report(on.says(fmt.Sprintf(delayedQueueAltered, upperFirst(queueList(on.queues)), d.Names,
			strings.Join(topology.Distinct(settings), ", "), strings.Join(topology.Distinct(effects), " ")), remedy))
	}
}

// alteration is a changed setting of an own queue, with its origin and its effect.
type alteration struct {
	origin              Object
	queue, what, effect string
}

// watched has the settings that decide where messages of an own queue go, each with the effect of another value.
var watched = map[string]string{
	"message-ttl":             effectOfTTL,
	"expires":                 effectOfExpires,
	"max-length":              effectOfLength,
	"max-length-bytes":        effectOfLength,
	"dead-letter-exchange":    effectOfDeadLetter,
	"dead-letter-routing-key": effectOfDeadLetter,
	"dead-letter-strategy":    effectOfDeadLetter,
	"overflow":                effectOfDeadLetter,
	"delivery-limit":          effectOfDeliveryLimit,
}

// alterations compares a queue's settings in force with the settings that it is created with.
func (g graph) alterations(queue string, made topology.Queue) []alteration {
	s := g.settings[queue]
	if s.Type != made.Type {
		return []alteration{{Object{"queue", queue}, queue, "type is " + s.Type, effectOfType}}
	}
	var found []alteration
	for key, effect := range watched {
		value, wanted := s.InForce(key), made.Arguments["x-"+key]
		if value == wanted || isHarmless(key, value, wanted) {
			continue
		}
		what := key + " is not set"
		if value != nil {
			what = fmt.Sprintf("%s is %v", key, value)
		}
		found = append(found, alteration{origin(s, queue, key, value), queue, what, effect})
	}
	return found
}

// isHarmless reports whether a different limit is still never reached.
func isHarmless(key string, value, wanted any) bool {
	number, _ := value.(int64)
	least, _ := wanted.(int64)
	return key == "max-length" && number >= topology.UnreachableLength || key == "delivery-limit" && number >= least
}

// origin returns the object that makes the setting in force.
func origin(s topology.Settings, queue, key string, inForce any) Object {
	set := func(policies []topology.NamedPolicy) bool {
		return inForce != nil && len(policies) > 0 && policies[0].Definition[key] == inForce
	}
	switch {
	case set(s.Operator):
		return Object{"operator_policy", s.Operator[0].Name}
	case set(s.Policies):
		return Object{"policy", s.Policies[0].Name}
	}
	return Object{"queue", queue}
}
