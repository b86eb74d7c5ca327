package adopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// stage is how far a vhost has moved from retries by hand.
type stage int

const (
	// now is the vhost as it is.
	now stage = iota
	// created has pipelines and delayed exchanges that get no message yet.
	created
	// attached has the work queues attached. Those that dead-letter by arguments have an attached successor.
	attached
	// switched has the bindings of the old work queues at their successors.
	switched
	// removed has no more of the retries by hand than others need.
	removed
)

// fillIn is an expression that Terraform refuses, in place of what only people know.
const fillIn = expression("FILL_IN")

// stages are the stages that differ from the one before.
func stages(retries []retry) []stage {
	found := []stage{now}
	if len(retries) == 0 {
		return found
	}
	found = append(found, created)
	if slices.ContainsFunc(retries, func(r retry) bool { return !r.isDelayed }) {
		found = append(found, attached)
	}
	if slices.ContainsFunc(retries, func(r retry) bool { return len(r.successors) > 0 }) {
		found = append(found, switched)
	}
	return append(found, removed)
}

// successor returns the name of the queue that takes a queue's place.
func (w *writer) successor(queue string) (name string, has bool) {
	for _, r := range w.retries {
		if name, has = r.successors[queue]; has {
			return name, has
		}
	}
	return "", false
}

// destination is the queue that a binding leads to at this stage.
func (w *writer) destination(queue string) string {
	if next, has := w.successor(queue); has && w.stage >= switched {
		return next
	}
	return queue
}

// addSuccessors adds the queues that take the place of work queues with dead-letter arguments.
func (w *writer) addSuccessors() {
	for _, each := range w.retries {
		for _, old := range slices.Sorted(maps.Keys(each.successors)) {
			queue := w.vhost.Queues[old]
			queue.Arguments = maps.Clone(queue.Arguments)
			maps.DeleteFunc(queue.Arguments, func(key string, _ any) bool { return deadLetters(key) })
			if w.stage >= attached {
				w.addQueue(each.successors[old], queue).id = nil
			}
		}
	}
}

// addRetries adds the pipelines and delayed exchanges that take the place of retries by hand.
func (w *writer) addRetries() {
	if w.stage == now {
		return
	}
	for _, each := range w.retries {
		if each.isDelayed {
			w.addDelayedRetry(each)
		} else {
			w.addRetry(each)
		}
	}
}

func (w *writer) addRetry(each retry) {
	r := w.inVhost("rabbitmq_retry_pipeline", each.name)
	r.id = nil
	decision := r.label + "_delays"
	if len(each.delays) > 0 {
		decision = r.label + "_max_attempts"
		var delays []any
		for _, delay := range each.delays {
			delays = append(delays, pipeline.FormatDelay(delay))
		}
		r.set("delays", delays, false)
		w.decide(decision, fmt.Sprintf("How often %s are delivered before a message is parked in %q. The consumers know that.",
			"messages of "+quotedList(each.work), each.name+".failed"))
		r.set("max_attempts", expression("local."+decision), false)
	} else {
		w.decide(decision, fmt.Sprintf("The waits before messages of %s are delivered again, such as [\"5s\", \"1m\"]. They were parked at once.",
			quotedList(each.work)))
		r.set("delays", expression("local."+decision), false)
	}
	if w.stage < attached {
		return
	}
	var queues []attribute
	for _, old := range each.work {
		name := old
		if next, has := each.successors[old]; has {
			name = next
		}
		key := quoted(name)
		if reference, has := w.refs["queue"+name]; has {
			key = "(" + reference + ")"
		}
		queues = append(queues, attribute{key, w.attachment(old)})
	}
	r.set("work_queues", queues, false)
}

// attachment has the attributes of a work queue that keep what its policy has set, except dead-lettering.
func (w *writer) attachment(queue string) []attribute {
	s, r := w.lookup.Queue(queue), resource{attributes: []attribute{}}
	definition := topology.Arguments{}
	if len(s.Policies) > 0 {
		maps.Copy(definition, s.Policies[0].Definition)
	}
	maps.DeleteFunc(definition, func(key string, _ any) bool {
		return strings.HasPrefix(key, "dead-letter-") || key == "overflow" && !s.Limited()
	})
	r.set("type", s.Type, s.Type == topology.Quorum)
	r.set("dead_letter_strategy", topology.AtMostOnce, s.Type != topology.Quorum || !s.Limited())
	r.set("policy_definition_json", asJSON(definition), len(definition) == 0)
	return r.attributes
}

// addDelayedRetry adds a delayed exchange that delivers where the waiting queue dead-letters to.
func (w *writer) addDelayedRetry(each retry) {
	r := w.inVhost("rabbitmq_delayed_exchange", each.name)
	r.id = nil
	decision := r.label + "_max_delay"
	w.decide(decision, fmt.Sprintf("The longest wait of a message in %s, such as \"24h\". The publishers know that.", quotedList(each.waiting)))
	through := w.deadLetterExchange(each.waiting[0])
	kind := "fanout"
	if through == "" {
		kind = "direct"
	}
	r.set("type", kind, false)
	r.set("max_delay", expression("local."+decision), false)
	deliver := expression(r.address() + ".deliver_exchange")
	if through != "" {
		w.addRoute(each.name+"_"+through, deliver, "exchange", through, "")
		return
	}
	for _, queue := range each.work {
		w.addRoute(each.name+"_"+queue, deliver, "queue", w.destination(queue), queue)
	}
}

func (w *writer) addRoute(label string, source expression, kind, destination, key string) {
	r := w.add("rabbitmq_binding", label)
	r.set("vhost", w.vhost.Name, false)
	r.set("source", source, false)
	r.set("destination_type", kind, kind == "queue")
	r.set("destination", w.ref(kind, destination), false)
	r.set("routing_key", key, key == "")
}

func (w *writer) deadLetterExchange(queue string) string {
	name, _ := w.lookup.Queue(queue).Text("dead-letter-exchange")
	return name
}

// decide adds a line that people must complete.
func (w *writer) decide(name, question string) {
	w.decisions = append(w.decisions, comment(question, "  ")+"  "+name+" = "+string(fillIn)+"\n")
}

// findRemoved finds what the last stage leaves out: waiting queues, work queues with a successor, exchanges that lead nowhere else, and
// policies for nothing else.
func (w *writer) findRemoved() {
	w.goes = map[string]bool{}
	attached := map[string]bool{}
	for _, each := range w.retries {
		for _, queue := range slices.Concat(each.waiting, slices.Collect(maps.Keys(each.successors))) {
			w.goes["queue"+queue] = true
		}
		for _, queue := range each.work {
			attached[queue] = !each.isDelayed || attached[queue]
		}
	}
	for name, policy := range w.vhost.Policies {
		if w.isForOnly(policy, func(queue string) bool { return w.goes["queue"+queue] || attached[queue] }) {
			w.goes["policy"+name] = true
		}
	}
	for more := true; more; {
		more = false
		for name := range w.vhost.Exchanges {
			if !w.goes["exchange"+name] && w.leadsOnlyTo(name) && !w.isNamed(name) {
				w.goes["exchange"+name], more = true, true
			}
		}
	}
}

// isForOnly reports whether a policy dead-letters queues of this kind, and has no other effect.
func (w *writer) isForOnly(policy topology.Policy, is func(queue string) bool) bool {
	if policy.Definition["dead-letter-exchange"] == nil || policy.Definition["alternate-exchange"] != nil {
		return false
	}
	covered := 0
	for name := range w.vhost.Queues {
		if matches, err := topology.MatchesPattern(policy.Pattern, name); matches || err != nil {
			if !is(name) {
				return false
			}
			covered++
		}
	}
	return covered > 0
}

// leadsOnlyTo reports whether an exchange has bindings, all of them to what goes, and gets nothing from what stays.
func (w *writer) leadsOnlyTo(name string) bool {
	leads := false
	for _, b := range w.vhost.Bindings {
		kind := "queue"
		if b.ToExchange {
			kind = "exchange"
		}
		switch {
		case b.Source == name && w.goes[kind+w.destination(b.Destination)]:
			leads = true
		case b.Source == name, b.ToExchange && b.Destination == name && !w.goes["exchange"+b.Source]:
			return false
		}
	}
	return leads && name != "" && !strings.HasPrefix(name, "amq.")
}

// isNamed reports whether something that stays names the exchange as its dead-letter or alternate exchange.
func (w *writer) isNamed(exchange string) bool {
	names := func(arguments topology.Arguments) bool {
		return slices.ContainsFunc([]string{"x-dead-letter-exchange", "dead-letter-exchange", "alternate-exchange"},
			func(key string) bool { return arguments[key] == exchange })
	}
	for name, queue := range w.vhost.Queues {
		if names(queue.Arguments) && !w.goes["queue"+name] {
			return true
		}
	}
	for name, other := range w.vhost.Exchanges {
		if names(other.Arguments) && !w.goes["exchange"+name] {
			return true
		}
	}
	for name, policy := range w.vhost.Policies {
		if names(policy.Definition) && !w.goes["policy"+name] {
			return true
		}
	}
	for _, policy := range w.vhost.OperatorPolicies {
		if names(policy.Definition) {
			return true
		}
	}
	return slices.ContainsFunc(w.retries, func(r retry) bool { return r.isDelayed && w.deadLetterExchange(r.waiting[0]) == exchange })
}
