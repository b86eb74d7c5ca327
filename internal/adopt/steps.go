package adopt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// stage is how far a vhost has moved from retries by hand.
type stage int

const (
	// now is the vhost as it is.
	now stage = iota
	// created has pipelines, delayed exchanges, and successors of work queues that dead-letter by arguments. They get no message yet.
	created
	// attached has the work queues, or their successors, attached.
	attached
	// switched has the bindings of the old work queues at their successors.
	switched
	// removed has no more of the retries by hand than others need.
	removed
)

// stages are the stages that differ from the one before.
func (w *writer) stages() []stage {
	found := []stage{now, created, attached, switched, removed}
	return slices.DeleteFunc(found, func(at stage) bool {
		return at > now && len(w.retries)+len(w.delays) == 0 || at == attached && len(w.retries) == 0 ||
			at == switched && len(w.successors) == 0 || at == removed && len(w.goes) == 0
	})
}

// fillIn is no value, so that Terraform refuses it. It stands for what only people know.
const fillIn = "FILL_IN"

// decide adds a line that people complete, and returns the expression for its value.
func (w *writer) decide(r *resource, what, question string, queues ...string) expression {
	name := r.label + "_" + what
	w.decisions = append(w.decisions, comment(fmt.Sprintf(question, list(queues)), "  ")+"  "+name+" = "+fillIn+"\n")
	return expression("local." + name)
}

// destination is the queue that a binding leads to at this stage.
func (w *writer) destination(queue string) string {
	if w.stage < switched {
		return queue
	}
	return cmp.Or(w.successors[queue], queue)
}

// attached are the queues that a pipeline gets.
func (w *writer) attached(r retry) (queues []string) {
	for _, queue := range r.work {
		queues = append(queues, cmp.Or(w.successors[queue], queue))
	}
	return queues
}

// addSuccessors adds the queues that take the place of work queues with dead-letter arguments.
func (w *writer) addSuccessors() {
	for _, old := range slices.Sorted(maps.Keys(w.successors)) {
		queue := w.vhost.Queues[old]
		queue.Arguments = maps.Clone(queue.Arguments)
		maps.DeleteFunc(queue.Arguments, func(key string, _ any) bool { return deadLetters(key) })
		w.addQueue(w.successors[old], queue).id = nil
	}
}

// addRetry adds the pipeline that takes the place of a retry by hand.
func (w *writer) addRetry(each retry) {
	p := pipeline.Pipeline{
		Name: each.name, Vhost: w.vhost.Name, MaxAttempts: len(each.delays) + 1, RetryOn: []string{"rejected"}, QueueType: topology.Quorum,
		PolicyPriority: pipeline.DefaultPolicyPriority, WorkQueues: map[string]pipeline.WorkQueue{},
	}
	for _, ttl := range each.delays {
		p.Delays = append(p.Delays, pipeline.Delay{Wait: ttl, Spelling: pipeline.FormatDelay(ttl)})
	}
	for i, name := range w.attached(each) {
		if w.stage >= attached {
			p.WorkQueues[name] = w.attachment(each.work[i])
		}
	}
	for _, queue := range each.work {
		if s := w.lookup.Queue(queue); len(s.Policies) > 0 {
			p.PolicyPriority = max(p.PolicyPriority, s.Policies[0].Priority+1)
		}
	}
	r := w.addPipeline(p)
	r.id = nil
	if len(each.delays) == 0 {
		r.set("delays", w.decide(r, "delays",
			"The waits before messages of %s are delivered again, such as [\"5s\", \"1m\"].", each.work...), false)
	} else {
		r.set("max_attempts", w.decide(r, "max_attempts",
			"How often messages of %s are delivered before they are parked. The consumers know that.", each.work...), false)
	}
	if each.unproved {
		w.decide(r, "waits", "Write true if messages come to %s only after a failure, and no program consumes them. Otherwise, do not go on.",
			each.waiting...)
	}
}

// attachment keeps what a work queue's policy sets, except dead-lettering.
func (w *writer) attachment(queue string) pipeline.WorkQueue {
	s := w.lookup.Queue(queue)
	q := pipeline.WorkQueue{Type: s.Type, Attach: pipeline.AttachPolicy, PolicyDefinition: topology.Arguments{}}
	if s.Type == topology.Quorum && s.Limited() {
		q.DeadLetterStrategy = topology.AtMostOnce
	}
	if len(s.Policies) > 0 {
		maps.Copy(q.PolicyDefinition, s.Policies[0].Definition)
	}
	for key := range q.PolicyDefinition {
		switch {
		case strings.HasPrefix(key, "dead-letter-"):
			q.PolicyDefinition[key] = nil // the provider asks for the consent
		case key == "overflow" && s.Type == topology.Quorum && !s.Limited():
			delete(q.PolicyDefinition, key)
		}
	}
	return q
}

// addDelay adds a delayed exchange that delivers where a waiting queue dead-letters to.
func (w *writer) addDelay(each delay) {
	e := delayed.Exchange{
		Name: each.name, Vhost: w.vhost.Name, Type: "direct", PolicyPriority: delayed.DefaultPolicyPriority,
		Precision: pipeline.Delay{Spelling: delayed.DefaultPrecision},
	}
	var routes []topology.Binding
	if through := w.deadLetterExchange(each.waiting); through != "" {
		e.Type = w.vhost.Exchanges[through].Type
		routes = slices.DeleteFunc(slices.Clone(w.vhost.Bindings), func(b topology.Binding) bool { return b.Source != through })
	} else {
		for _, queue := range each.work {
			routes = append(routes, topology.Binding{Destination: queue, RoutingKey: queue})
		}
	}
	r := w.addDelayed(e)
	r.id = nil
	r.set("max_delay", w.decide(r, "max_delay",
		"The longest wait of a message in %s, such as \"24h\". If a program consumes this queue, do not go on.", each.waiting), false)
	for _, route := range routes {
		route.Source = e.Names().DeliverExchange()
		w.addBinding(route).id = nil
	}
}

func (w *writer) deadLetterExchange(queue string) string {
	name, _ := w.lookup.Queue(queue).Text("dead-letter-exchange")
	return name
}

// findRemoved finds what the last stage leaves out: queues, policies for nothing else, and exchanges that lead nowhere else.
func (w *writer) findRemoved() {
	work := map[string]bool{}
	for _, each := range w.retries {
		for _, queue := range each.work {
			work[queue] = true
		}
	}
	w.findRemovedQueues(work)
	for name, policy := range w.vhost.Policies {
		_, owned := w.owned.Policies[name]
		if !owned && w.wants(name) && w.isOnlyFor(policy, func(queue string) bool { return w.goes["queue"+queue] || work[queue] }) {
			w.goes["policy"+name] = true
		}
	}
	for before := -1; before != len(w.goes); { // an exchange can lead to an exchange that goes
		before = len(w.goes)
		for name := range w.vhost.Exchanges {
			if w.wants(name) && w.leadsOnlyToRemoved(name) && !w.isNamed(name) {
				w.goes["exchange"+name] = true
			}
		}
	}
}

// findRemovedQueues finds waiting queues, and work queues with a successor, unless a queue that stays dead-letters to them.
func (w *writer) findRemovedQueues(work map[string]bool) {
	going := slices.Collect(maps.Keys(w.successors))
	for _, each := range w.retries {
		going = append(going, each.waiting...)
	}
	for _, each := range w.delays {
		going = append(going, each.waiting)
	}
	for _, queue := range going {
		w.goes["queue"+queue] = true
	}
	for before := -1; before != len(w.goes); {
		before = len(w.goes)
		for queue, targets := range w.targets {
			if w.goes["queue"+queue] || work[queue] && w.successors[queue] == "" {
				continue
			}
			for _, target := range targets {
				if moved := w.successors[target] != "" && w.deadLetterExchange(queue) != ""; !moved {
					delete(w.goes, "queue"+target)
				}
			}
		}
	}
}

// isOnlyFor reports whether a policy dead-letters, and covers only queues of a kind.
func (w *writer) isOnlyFor(policy topology.Policy, is func(queue string) bool) bool {
	covers := false
	for name := range w.vhost.Queues {
		if matches, err := topology.MatchesPattern(policy.Pattern, name); matches || err != nil {
			if !is(name) {
				return false
			}
			covers = true
		}
	}
	return covers && policy.Definition["dead-letter-exchange"] != nil && policy.Definition["alternate-exchange"] == nil
}

// leadsOnlyToRemoved reports whether an exchange has bindings, all of them to what goes, and gets nothing from what stays.
func (w *writer) leadsOnlyToRemoved(name string) bool {
	leads := false
	for _, b := range w.vhost.Bindings {
		kind := kindOf(b)
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
	named := false
	look := func(stays bool, arguments topology.Arguments) {
		for _, key := range []string{"x-dead-letter-exchange", "dead-letter-exchange", "alternate-exchange"} {
			named = named || stays && arguments[key] == exchange
		}
	}
	for name, queue := range w.vhost.Queues {
		look(!w.goes["queue"+name], queue.Arguments)
	}
	for name, other := range w.vhost.Exchanges {
		look(!w.goes["exchange"+name], other.Arguments)
	}
	for name, policy := range w.vhost.Policies {
		look(!w.goes["policy"+name], policy.Definition)
	}
	for _, policy := range w.vhost.OperatorPolicies {
		look(true, policy.Definition)
	}
	return named
}
