package adopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
			at == switched && len(w.replaced()) == 0 || at == removed && len(w.goes) == 0
	})
}

// replaced are the work queues that get a successor.
func (w *writer) replaced() (queues []*queue) {
	for _, name := range sorted(w.queues) {
		if q := w.queues[name]; q.next != "" && q.next != name {
			queues = append(queues, q)
		}
	}
	return queues
}

// afterSwitch is where a binding leads in the end.
func (w *writer) afterSwitch(o object) object {
	if q := w.queues[o.name]; o.kind == "queue" && q != nil && q.next != "" {
		o.name = q.next
	}
	return o
}

// addSuccessors adds the queues that take the place of work queues with dead-letter arguments.
func (w *writer) addSuccessors() {
	for _, old := range w.replaced() {
		q := old.Queue
		q.Arguments = maps.Clone(q.Arguments)
		maps.DeleteFunc(q.Arguments, func(key string, _ any) bool { return deadLetters(key) })
		w.addQueue(old.next, q).from = created
	}
}

// decide adds a line for what only people know, and returns the expression for its value. Terraform refuses FILL_IN.
func (w *writer) decide(r *resource, what, question string, queues []*queue) expression {
	name := r.label + "_" + what
	w.decisions = append(w.decisions, comment(fmt.Sprintf(question, list(queues)), "  #", "  #")+"  "+name+" = FILL_IN\n")
	return expression("local." + name)
}

// addRetryPipeline adds the pipeline that takes the place of a retry by hand.
func (w *writer) addRetryPipeline(each retry) {
	p := pipeline.Pipeline{
		Name: each.name, Vhost: w.vhost.Name, QueueType: topology.Quorum, PolicyPriority: pipeline.DefaultPolicyPriority,
	}
	var waits []time.Duration
	for _, q := range each.waiting {
		waits = append(waits, q.ttl())
	}
	for _, wait := range topology.Distinct(waits) {
		p.Delays = append(p.Delays, pipeline.Delay{Wait: wait, Spelling: pipeline.FormatDelay(wait)})
	}
	p.MaxAttempts = len(p.Delays) + 1
	queues := map[string]pipeline.WorkQueue{}
	for _, q := range each.work {
		queues[q.next] = q.attachment()
		if len(q.Policies) > 0 {
			p.PolicyPriority = max(p.PolicyPriority, q.Policies[0].Priority+1)
		}
	}
	r := w.addPipeline(p)
	r.from = created
	r.setBetween(attached, removed, "work_queues", w.workQueues(queues))
	if len(each.waiting) == 0 {
		r.set("delays", w.decide(r, "delays",
			"The waits before messages of %s are delivered again, such as [\"5s\", \"1m\"].", each.work))
		return
	}
	r.set("max_attempts", w.decide(r, "max_attempts",
		"How often messages of %s are delivered before they are parked. The consumers know that.", each.work))
	if slices.ContainsFunc(each.waiting, func(q *queue) bool { return len(q.sources) == 0 }) { // only what is published waits there
		w.decide(r, "waits", "Write true if messages come to %s only after a failure, and no program consumes them. Otherwise, do not go on.",
			each.waiting)
	}
	if slices.ContainsFunc(each.waiting, func(q *queue) bool { return len(q.targets) > 1 }) {
		w.decide(r, "retries", "Write true if the consumers of each of %s retry messages. If one of them only gets copies, do not go on.",
			each.work)
	}
}

// attachment keeps what a work queue's policy sets, except dead-lettering.
func (q *queue) attachment() pipeline.WorkQueue {
	w := pipeline.WorkQueue{Type: q.Type, Attach: pipeline.AttachPolicy, PolicyDefinition: topology.Arguments{}}
	if q.Type == topology.Quorum && q.Limited() {
		w.DeadLetterStrategy = topology.AtMostOnce
	}
	if len(q.Policies) > 0 {
		maps.Copy(w.PolicyDefinition, q.Policies[0].Definition)
	}
	for key := range w.PolicyDefinition {
		switch {
		case strings.HasPrefix(key, "dead-letter-"):
			w.PolicyDefinition[key] = nil // the provider asks for the consent
		case key == "overflow" && q.Type == topology.Quorum && !q.Limited():
			delete(w.PolicyDefinition, key)
		}
	}
	return w
}

// addDelay adds a delayed exchange that delivers where a waiting queue dead-letters to.
func (w *writer) addDelay(each retry) {
	e := delayed.Exchange{
		Name: each.name, Vhost: w.vhost.Name, Type: "direct", PolicyPriority: delayed.DefaultPolicyPriority,
		Precision: pipeline.Delay{Spelling: delayed.DefaultPrecision},
	}
	var routes []topology.Binding
	if through := each.waiting[0].deadLetterExchange(); through != "" {
		e.Type = w.vhost.Exchanges[through].Type
		routes = slices.DeleteFunc(slices.Clone(w.vhost.Bindings), func(b topology.Binding) bool { return b.Source != through })
	} else {
		for _, q := range each.waiting[0].targets {
			routes = append(routes, topology.Binding{Destination: q.name, RoutingKey: q.name})
		}
	}
	r := w.addDelayed(e)
	r.from = created
	r.set("max_delay", w.decide(r, "max_delay",
		"The longest wait of a message in %s, such as \"24h\". If a program consumes this queue, do not go on.", each.waiting))
	for _, route := range routes {
		route.Source = e.Names().DeliverExchange()
		w.addBinding(route).from = created
	}
}

// order makes the last step delete a waiting queue before everything that its messages need on their way back. If Terraform refuses to
// delete it, all of that stays.
func (w *writer) order(q *queue) {
	through := object{"exchange", q.deadLetterExchange()}
	needed := map[object]bool{through: true}
	for _, p := range q.Policies {
		needed[object{"policy", p.Name}] = true
	}
	for _, target := range q.targets {
		needed[object{"queue", target.name}] = true
		needed[w.afterSwitch(object{"queue", target.name})] = true
	}
	var on []any
	for _, r := range w.resources {
		leadsBack := r.kind != "binding" || r.needs[0] == through && needed[r.needs[1]]
		if r.from == now && len(r.needs) > 0 && needed[r.needs[0]] && leadsBack {
			on = append(on, expression(r.address()))
		}
	}
	for _, r := range w.resources {
		if r.kind == "queue" && r.needs[0].name == q.name && len(on) > 0 {
			r.setBetween(now, switched, "depends_on", on)
		}
	}
}

// findRemoved finds what the last stage does not have: the objects of the retries that nothing else needs.
func (w *writer) findRemoved() {
	for _, each := range slices.Concat(w.retries, w.delays) {
		for _, q := range slices.Concat(each.waiting, each.work) {
			w.goes[object{"queue", q.name}] = q.next != q.name
			for _, p := range q.Policies {
				w.goes[object{"policy", p.Name}] = p.Definition["dead-letter-exchange"] != nil && p.Definition["alternate-exchange"] == nil
			}
		}
		for _, q := range each.waiting {
			for _, exchange := range w.exchangesTo(q) {
				w.goes[object{"exchange", exchange}] = true
			}
		}
	}
	candidates, needed := slices.Collect(maps.Keys(w.goes)), w.needers()
	for before := -1; before != len(w.goes); {
		before = len(w.goes)
		maps.DeleteFunc(w.goes, func(o object, goes bool) bool {
			_, adopted := w.refs[o]
			return !goes || !adopted || slices.ContainsFunc(needed[o], func(by object) bool { return !w.goes[by] })
		})
	}
	w.findStaying(candidates)
}

// findStaying names what the retries used and the last stage has, besides work queues.
func (w *writer) findStaying(candidates []object) {
	for _, each := range w.retries {
		for _, q := range each.work {
			candidates = append(candidates, object{"exchange", q.deadLetterExchange()})
			for _, target := range q.targets {
				candidates = append(candidates, object{"queue", target.name})
			}
		}
	}
	for _, o := range candidates {
		q, isQueue := w.queues[o.name]
		isWork := o.kind == "queue" && isQueue && q.next == o.name
		if _, adopted := w.refs[o]; adopted && !w.goes[o] && !isWork {
			w.stays = append(w.stays, fmt.Sprintf("%s %q", o.kind, o.name))
		}
	}
	w.stays = topology.Distinct(w.stays)
}

func covers(p topology.Policy, queue string) bool {
	matches, err := topology.MatchesPattern(p.Pattern, queue)
	return matches || err != nil // what cannot be evaluated can match
}

// exchangesTo are the exchanges that lead to a queue.
func (w *writer) exchangesTo(q *queue) (names []string) {
	for _, b := range w.vhost.Bindings {
		if b.Source != "" && destinationOf(b) == (object{"queue", q.name}) {
			names = append(names, b.Source)
		}
	}
	return topology.Distinct(names)
}

// needers has, for each object, those that need it in the last stage.
type needers map[object][]object

func (n needers) add(kind, name string, by object) {
	n[object{kind, name}] = append(n[object{kind, name}], by)
}

// addNamed adds the exchanges that arguments or a policy name.
func (n needers) addNamed(in topology.Arguments, by object) {
	for _, key := range []string{"x-dead-letter-exchange", "dead-letter-exchange", "alternate-exchange"} {
		if exchange, is := in[key].(string); is {
			n.add("exchange", exchange, by)
		}
	}
}

// needers finds what needs what. Attached queues need neither a policy nor its exchange.
func (w *writer) needers() needers {
	found := needers{}
	for name, q := range w.queues {
		found.addNamed(q.Arguments, object{"queue", name})
		for _, target := range q.targets {
			if moves := target.next != "" && q.deadLetterExchange() != ""; q.next != name && !moves {
				found.add("queue", target.name, object{"queue", name})
			}
		}
	}
	for name, e := range w.vhost.Exchanges {
		found.addNamed(e.Arguments, object{"exchange", name})
	}
	for name, p := range w.vhost.OperatorPolicies {
		found.addNamed(p.Definition, object{"operator_policy", name})
	}
	for name, p := range w.vhost.Policies {
		found.addNamed(p.Definition, object{"policy", name})
		goes := w.goes[object{"policy", name}]
		for queue, q := range w.queues {
			if goes && q.next != queue && covers(p, queue) {
				found.add("policy", name, object{"queue", queue})
			}
		}
	}
	for _, b := range w.vhost.Bindings {
		found.add("exchange", b.Source, w.afterSwitch(destinationOf(b)))
		if b.ToExchange {
			found.add("exchange", b.Destination, object{"exchange", b.Source})
		}
	}
	return found
}
