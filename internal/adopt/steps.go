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

// afterSwitch is where a binding leads in the end.
func (w *writer) afterSwitch(o object) object {
	if q := w.queues[o.name]; o.kind == "queue" && q != nil && q.next != "" {
		o.name = q.next
	}
	return o
}

// addReplacements adds what takes the place of retries by hand, and says how.
func (w *writer) addReplacements() {
	for _, each := range w.retries {
		if len(each.work) == 0 {
			w.addDelay(each)
		} else {
			w.addRetryPipeline(each)
		}
		for _, q := range each.waiting {
			w.order(q)
		}
	}
	for _, name := range sorted(w.queues) {
		old := w.queues[name]
		if old.next == "" || old.next == name {
			continue
		}
		q := old.Queue
		q.Arguments = maps.Clone(q.Arguments)
		maps.DeleteFunc(q.Arguments, func(key string, _ any) bool { return deadLetters(key) })
		w.addQueue(old.next, q).from = created
		w.point(created, "Consumers of %q also read %q. Their users need read permission on it.", old, old.next)
		w.point(attached, "In %q, consumers work as before.", old)
		w.point(switched, "Programs that publish to the queue %q by its name (default exchange): publish to %q.", old, old.next)
	}
}

// decide adds a line for what only people know, and returns the expression for its value. Terraform refuses FILL_IN.
func (w *writer) decide(r *resource, what, question string, queues []*queue) expression {
	name := r.label + "_" + what
	w.decisions = append(w.decisions, comment("  #", fmt.Sprintf(question, list(queues)))+"  "+name+" = FILL_IN\n")
	return expression("local." + name)
}

func (w *writer) addRetryPipeline(each retry) {
	p := pipeline.Pipeline{Name: each.name, QueueType: topology.Quorum, PolicyPriority: pipeline.DefaultPolicyPriority}
	for _, q := range each.waiting {
		p.Delays = append(p.Delays, pipeline.Delay{Wait: q.ttl(), Spelling: pipeline.FormatDelay(q.ttl())})
	}
	slices.SortFunc(p.Delays, func(a, b pipeline.Delay) int { return cmp.Compare(a.Wait, b.Wait) })
	p.Delays = slices.Compact(p.Delays)
	queues := map[string]pipeline.WorkQueue{}
	for _, q := range each.work {
		queues[q.next] = q.attachment()
		if len(q.Policies) > 0 {
			p.PolicyPriority = max(p.PolicyPriority, q.Policies[0].Priority+1)
		}
	}
	w.point(attached, "Consumers of %s: reject what fails (basic.nack or basic.reject, requeue=false). Do not publish it to other queues, "+
		"and do not count. It comes back after the delays of the pipeline, and is parked in %q in the end.",
		list(sorted(queues)), p.Names().FailedQueue())
	w.point(attached, "Programs that read what is parked: read %q too.", p.Names().FailedQueue())
	r := w.addPipeline(p)
	r.from = created
	r.setBetween(attached, removed, "work_queues", queues)
	if len(each.waiting) == 0 {
		r.set("delays", w.decide(r, "delays", "The waits before messages of %s are delivered again, such as [\"5s\", \"1m\"].", each.work))
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
	old, key := each.waiting[0], "the same routing key"
	through := old.deadLetterExchange()
	e := delayed.Exchange{Name: each.name, Type: w.vhost.Exchanges[through].Type, PolicyPriority: delayed.DefaultPolicyPriority}
	routes := slices.DeleteFunc(slices.Clone(w.vhost.Bindings), func(b topology.Binding) bool { return b.Source != through })
	if through == "" {
		e.Type, routes = "direct", nil
		for _, q := range old.targets {
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
	if replaced, is := old.Text("dead-letter-routing-key"); is {
		key = fmt.Sprintf("the routing key %q", replaced)
	}
	w.point(created, "Programs that publish to %s: publish to the exchange %q instead, with %s. In place of expiration, set the header "+
		"x-delay to the same number of milliseconds. The users need write permission on %q.",
		list(append([]string{old.name}, topology.Distinct(old.exchanges)...)), e.Name, key, e.Name)
}

// order makes the last step delete a waiting queue before everything that its messages need on their way back. If Terraform refuses to
// delete it, all of that stays.
func (w *writer) order(q *queue) {
	leadBack := map[object]bool{{"exchange", q.deadLetterExchange()}: true}
	for _, p := range q.Policies {
		leadBack[object{"policy", p.Name}] = true
	}
	for _, target := range q.targets {
		old := object{"queue", target.name}
		leadBack[old], leadBack[w.afterSwitch(old)] = true, true
	}
	var on []any
	for _, r := range w.resources {
		if r.from == now && !slices.ContainsFunc(r.needs, func(o object) bool { return !leadBack[o] }) {
			on = append(on, expression(r.address()))
		}
	}
	for _, r := range w.resources {
		if r.needs[0] == (object{"queue", q.name}) && len(on) > 0 {
			r.setBetween(now, switched, "depends_on", on)
		}
	}
}

// findRemoved finds what the last stage does not have: the objects of the retries that nothing else needs. The others stay.
func (w *writer) findRemoved() {
	for _, each := range w.retries {
		for _, q := range each.work {
			w.goes[object{"exchange", q.deadLetterExchange()}] = false
			for _, target := range q.targets {
				w.goes[object{"queue", target.name}] = false
			}
		}
	}
	for _, each := range w.retries {
		for _, q := range slices.Concat(each.waiting, each.work) {
			w.goes[object{"queue", q.name}] = true
			for _, p := range q.Policies {
				w.goes[object{"policy", p.Name}] = p.Definition["dead-letter-exchange"] != nil && p.Definition["alternate-exchange"] == nil
			}
		}
		for _, q := range each.waiting {
			for _, exchange := range q.exchanges {
				w.goes[object{"exchange", exchange}] = true
			}
		}
	}
	maps.DeleteFunc(w.goes, func(o object, _ bool) bool { // what has no resource, or goes on with a pipeline
		return w.refs[o] == "" || o.kind == "queue" && w.queues[o.name].next == o.name
	})
	for w.kept = true; w.kept; {
		w.kept = false
		w.keepNeeded()
	}
	objects := slices.Collect(maps.Keys(w.goes))
	topology.SortByText(objects)
	for _, o := range objects {
		if w.goes[o] {
			w.point(removed, "%s", o)
		} else {
			w.stays += "\n* " + o.String()
		}
	}
}

// keepNeeded keeps what something else needs in the last stage. Attached queues need neither a policy nor where it leads.
func (w *writer) keepNeeded() {
	for name, q := range w.queues {
		by := object{"queue", name}
		w.keepNamed(q.Arguments, by)
		if q.next == name {
			continue
		}
		for _, p := range q.Policies {
			w.keep("policy", p.Name, by)
		}
		for _, target := range q.targets {
			if target.next == "" || q.deadLetterExchange() == "" { // otherwise, its bindings lead to its successor
				w.keep("queue", target.name, by)
			}
		}
	}
	for _, p := range w.unreadable {
		w.keep("policy", p.Name, object{})
	}
	for name, e := range w.vhost.Exchanges {
		w.keepNamed(e.Arguments, object{"exchange", name})
	}
	for name, p := range w.vhost.OperatorPolicies {
		w.keepNamed(p.Definition, object{"operator_policy", name})
	}
	for name, p := range w.vhost.Policies {
		w.keepNamed(p.Definition, object{"policy", name})
	}
	for _, b := range w.vhost.Bindings {
		ends := endsOf(b)
		w.keep("exchange", b.Source, w.afterSwitch(ends[1]))
		if b.ToExchange {
			w.keep("exchange", b.Destination, ends[0])
		}
	}
}

// keepNamed keeps the exchanges that arguments or a policy name.
func (w *writer) keepNamed(in topology.Arguments, by object) {
	for _, key := range []string{"x-dead-letter-exchange", "dead-letter-exchange", "alternate-exchange"} {
		if exchange, is := in[key].(string); is {
			w.keep("exchange", exchange, by)
		}
	}
}

// keep makes an object stay if another object, which stays, needs it.
func (w *writer) keep(kind, name string, by object) {
	if o := (object{kind, name}); w.goes[o] && !w.goes[by] {
		w.goes[o], w.kept = false, true
	}
}
