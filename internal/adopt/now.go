// Package adopt writes the objects of a vhost as Terraform configuration, with an import block for each.
//
// It is pure.
package adopt

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Adopted is the configuration of a vhost.
type Adopted struct {
	// Folders are the vhost as it is, and then the steps from retries by hand to pipelines.
	Folders []Folder
	// Resources counts the resources of the first folder by type.
	Resources map[string]int
	// Left says which objects no resource can hold, which retries get no steps, and why.
	Left []string
}

// Folder is a whole configuration.
type Folder struct {
	Name string
	// Files are the texts of the files by name.
	Files map[string]string
}

// Vhost writes a vhost as it is, and the steps to pipelines. If a pattern is given, it takes only the objects whose name matches, and
// bindings from or to a name that matches. Queues that are consumed have a consumer.
func Vhost(vhost topology.Vhost, only *regexp.Regexp, consumed map[string]bool) Adopted {
	w := &writer{vhost: vhost, only: only, owned: topology.New(), queues: map[string]*queue{}, given: map[string]bool{}}
	w.labels, w.goes, w.refs, w.served = map[string]bool{}, map[object]bool{}, map[object]expression{}, map[string]any{}
	w.findOwners()
	w.leaveOut()
	w.recognise(consumed)
	w.addObjects()
	w.findRemoved()
	adopted := Adopted{Left: w.left, Resources: map[string]int{}}
	for _, r := range w.resources {
		if r.from == now {
			adopted.Resources["rabbitmq_"+r.kind]++
		}
	}
	steps := w.stages()
	for number, at := range steps {
		folder := Folder{fmt.Sprintf("step-%d", number), w.files(at)}
		if at > now {
			folder.Files["step.tf"] = w.explain(number, steps)
		} else {
			folder.Name, folder.Files["step.tf"] = "now", "# The vhost as it is.\n"
		}
		adopted.Folders = append(adopted.Folders, folder)
	}
	return adopted
}

// writer collects the resources of a vhost.
type writer struct {
	configuration
	vhost topology.Vhost
	only  *regexp.Regexp
	// rest are the objects that get a resource each. The others are owned by pipelines and delayed exchanges, or left out.
	rest, owned topology.Topology
	left        []string
	// owners add pipelines, attachments and delayed exchanges.
	owners []func()
	queues map[string]*queue
	// A pipeline takes the place of each retry, and a delayed exchange the place of each delay.
	retries, delays []retry
	// stays are what the retries used and the last stage has.
	stays []string
	// names has all queues and exchanges, and given the new objects.
	names []string
	given map[string]bool
	// refs has the expressions for the names of objects that the configuration has.
	refs map[object]expression
	// served and permissions are expressions for the sidecar's configuration and permissions.
	served      map[string]any
	permissions []string
}

func (w *writer) wants(name string) bool { return w.only == nil || w.only.MatchString(name) }

func (w *writer) leave(format string, arguments ...any) {
	w.left = append(w.left, fmt.Sprintf(format, arguments...))
}

// ref is the name of an object: a reference, if the configuration has it.
func (w *writer) ref(o object) any {
	if reference, has := w.refs[o]; has {
		return reference
	}
	return o.name
}

// findOwners finds pipelines, attachments and delayed exchanges. Their objects are no resources by themselves.
func (w *writer) findOwners() {
	all := w.vhost.Topology
	for _, name := range pipeline.Pipelines(all) {
		p, err := pipeline.Recover(name, w.vhost.Name, all)
		w.own(p.Owned(all), fmt.Sprintf("pipeline %q", name), err, func() { w.addPipeline(p) }, name)
		for _, queue := range pipeline.Attached(p.Names(), all) {
			a, err := pipeline.RecoverAttachment(name, w.vhost.Name, queue, all)
			w.own(a.Owned(all), fmt.Sprintf("attachment of %q", queue), err, func() { w.addAttachment(a) }, name, queue)
		}
	}
	for _, name := range delayed.Found(all) {
		e, err := delayed.Recover(name, w.vhost.Name, all)
		if err != nil {
			e.MaxDelay.Wait, e.Precision.Wait = time.Second, time.Second // its objects are found by their names
		}
		w.own(e.Owned(all), fmt.Sprintf("delayed exchange %q", name), err, func() { w.addDelayed(e) }, name)
	}
}

// own notes an owner's objects, and how to add it, if it is wanted and can be read.
func (w *writer) own(objects topology.Topology, owner string, err error, add func(), names ...string) {
	w.owned = topology.Merge(w.owned, objects)
	if err != nil {
		w.leave("%s: %s", owner, err)
	} else if slices.ContainsFunc(names, w.wants) {
		w.owners = append(w.owners, add)
	}
}

// leaveOut finds the objects that get a resource each, and names those that none can hold.
func (w *writer) leaveOut() {
	w.rest = w.vhost.Without(w.owned)
	maps.DeleteFunc(w.rest.Exchanges, func(name string, _ topology.Exchange) bool {
		return name == "" || strings.HasPrefix(name, "amq.") || w.leavesOut(object{"exchange", name})
	})
	maps.DeleteFunc(w.rest.Queues, func(name string, _ topology.Queue) bool { return w.leavesOut(object{"queue", name}) })
	maps.DeleteFunc(w.rest.Policies, func(name string, _ topology.Policy) bool { return !w.wants(name) })
	w.rest.Bindings = slices.DeleteFunc(w.rest.Bindings, func(b topology.Binding) bool {
		return b.Source == "" || w.isTemporary(destinationOf(b)) || !w.wants(b.Source) && !w.wants(b.Destination)
	})
	slices.Sort(w.left)
}

// madeByOthers matches queues and exchanges that the broker, a plugin or a client makes for itself.
var madeByOthers = regexp.MustCompile(`^(amq\.gen-|federation: |mqtt-subscription-|stomp-subscription-)`)

func (w *writer) isTemporary(o object) bool {
	return madeByOthers.MatchString(o.name) || o.kind == "queue" && w.vhost.Queues[o.name].Exclusive
}

func (w *writer) leavesOut(o object) bool {
	if w.wants(o.name) && w.isTemporary(o) {
		w.leave("%s %q: it goes with its connection, or a plugin or client made it", o.kind, o.name)
	}
	return !w.wants(o.name) || w.isTemporary(o)
}

func sorted[T any](objects map[string]T) []string { return slices.Sorted(maps.Keys(objects)) }

// addObjects adds the vhost as it is, and what takes the place of retries by hand. Later objects refer to earlier ones.
func (w *writer) addObjects() {
	w.addExchanges()
	for _, name := range sorted(w.rest.Queues) {
		w.addQueue(name, w.rest.Queues[name])
	}
	w.addSuccessors()
	for _, add := range w.owners {
		add()
	}
	w.addBindings()
	w.addPolicies("policy", w.rest.Policies, "all")
	w.addPolicies("operator_policy", w.vhost.OperatorPolicies, "queues")
	for _, each := range w.retries {
		w.addRetryPipeline(each)
	}
	for _, each := range w.delays {
		w.addDelay(each)
	}
	for _, each := range slices.Concat(w.retries, w.delays) {
		for _, q := range each.waiting {
			w.order(q)
		}
	}
}

// inVhost adds a resource that is known by its name in the vhost.
func (w *writer) inVhost(kind, name string) *resource {
	o := object{kind, name}
	r := w.add(kind, name, o)
	r.id = importID(w.vhost.Name, name)
	r.set("name", name)
	r.set("vhost", w.vhost.Name)
	w.refs[o] = expression(r.address() + ".name")
	return r
}

func (w *writer) addExchanges() {
	for _, name := range sorted(w.rest.Exchanges) {
		e, r := w.rest.Exchanges[name], w.inVhost("exchange", name)
		r.set("type", e.Type)
		r.set("durable", !e.Transient, true)
		r.set("auto_delete", e.AutoDelete, false)
		r.set("internal", e.Internal, false)
		r.set("arguments", e.Arguments)
	}
}

func (w *writer) addQueue(name string, q topology.Queue) *resource {
	r := w.inVhost("queue", name)
	r.set("type", q.Type)
	r.set("durable", !q.Transient, true)
	r.set("auto_delete", q.AutoDelete, false)
	r.set("arguments", q.Arguments)
	return r
}

func (w *writer) addPolicies(kind string, policies map[string]topology.Policy, appliesTo string) {
	for _, name := range slices.DeleteFunc(sorted(policies), func(name string) bool { return !w.wants(name) }) {
		p, r := policies[name], w.inVhost(kind, name)
		r.set("pattern", p.Pattern)
		r.set("apply_to", p.ApplyTo, appliesTo)
		r.set("priority", p.Priority, 0)
		r.set("definition", map[string]any(p.Definition))
	}
}

// destinationOf is what a binding leads to.
func destinationOf(b topology.Binding) object {
	if b.ToExchange {
		return object{"exchange", b.Destination}
	}
	return object{"queue", b.Destination}
}

func (w *writer) addBindings() {
	between := map[[2]object][]topology.Binding{}
	endsOf := func(b topology.Binding) [2]object { return [2]object{{"exchange", b.Source}, destinationOf(b)} }
	for _, b := range w.vhost.Bindings {
		between[endsOf(b)] = append(between[endsOf(b)], b)
	}
	topology.SortByText(w.rest.Bindings)
	for _, b := range w.rest.Bindings {
		if b.PropertiesKey == "." || b.PropertiesKey == ".." {
			w.leave("binding %s: the management API cannot delete a binding with this key", b)
			continue
		}
		ends := importID(w.vhost.Name, b.Source, destinationOf(b).kind, b.Destination)
		w.addBinding(b).id = ends + "/" + topology.OnlyEnd(b, between[endsOf(b)])
	}
}

// addBinding adds a binding. If its queue gets a successor, the binding moves there.
func (w *writer) addBinding(b topology.Binding) *resource {
	label := b.Source + "_" + b.Destination
	if b.RoutingKey != "" && b.RoutingKey != b.Destination {
		label += "_" + b.RoutingKey
	}
	from, to := object{"exchange", b.Source}, destinationOf(b)
	next := w.afterSwitch(to)
	r := w.add("binding", label, from, next)
	r.set("vhost", w.vhost.Name)
	r.set("source", w.ref(from))
	r.set("destination_type", to.kind, "queue")
	r.setBetween(now, attached, "destination", w.ref(to))
	r.setBetween(switched, removed, "destination", w.ref(next))
	r.set("routing_key", b.RoutingKey, "")
	r.set("arguments", b.Arguments)
	if next != to {
		r.lines = append(r.lines, line{"lifecycle {\ncreate_before_destroy = true\n}\n", now, removed})
	}
	return r
}

func (w *writer) addPipeline(p pipeline.Pipeline) *resource {
	r := w.inVhost("retry_pipeline", p.Name)
	r.set("engine", p.EngineName(), pipeline.EngineWorker)
	if len(p.Delays) > 0 {
		r.set("delays", p.Definition().Delays)
	}
	r.set("max_attempts", p.MaxAttempts, len(p.Delays)+1)
	r.set("max_age", p.MaxAge.Spelling, "")
	if len(p.RetryOn) > 1 {
		r.set("retry_on", p.RetryOn)
	}
	r.set("queue_type", p.QueueType, topology.Quorum)
	r.set("policy_priority", p.PolicyPriority, pipeline.DefaultPolicyPriority)
	r.setJSON("policy_definition_json", p.PolicyDefinition)
	if len(p.WorkQueues) > 0 {
		r.set("work_queues", w.workQueues(p.WorkQueues))
	}
	w.refs[object{"exchange", p.DeadLetterExchange()}] = expression(r.address() + ".dead_letter_exchange")
	w.refs[object{"queue", p.Names().FailedQueue()}] = expression(r.address() + ".failed_queue_name")
	if p.EngineName() == pipeline.EngineWorker {
		w.serve("pipelines", r)
	}
	return r
}

// workQueues is a table of work queues. Its keys are references, if the configuration has the queues.
func (w *writer) workQueues(queues map[string]pipeline.WorkQueue) expression {
	var lines strings.Builder
	for _, name := range sorted(queues) {
		key := quoted(name)
		if reference, has := w.refs[object{"queue", name}]; has {
			key = "(" + string(reference) + ")"
		}
		var queue resource
		queue.describe(queues[name], w.ref)
		lines.WriteString(attribute(key, expression(queue.body(now))))
	}
	return expression(braces(lines.String()))
}

func (w *writer) addAttachment(a pipeline.Attachment) {
	r := w.add("retry_attachment", a.Queue)
	r.id = importID(w.vhost.Name, a.Pipeline, a.Queue)
	r.set("pipeline", w.ref(object{"retry_pipeline", a.Pipeline}))
	r.set("vhost", w.vhost.Name)
	r.set("queue", w.ref(object{"queue", a.Queue}))
	r.set("engine", a.AsPipeline().EngineName(), pipeline.EngineWorker)
	r.describe(a.WorkQueue, w.ref)
	r.set("policy_priority", a.PolicyPriority, pipeline.DefaultPolicyPriority)
}

// describe sets what pipelines and attachments say of a work queue.
func (r *resource) describe(q pipeline.WorkQueue, ref func(object) any) {
	r.set("type", q.Type, topology.Quorum)
	r.set("declare", q.Declare, false)
	r.setJSON("arguments_json", q.Arguments)
	r.set("attach", q.Attach, pipeline.AttachPolicy)
	r.set("dead_letter_strategy", q.DeadLetterStrategy, "")
	r.set("max_attempts", q.MaxAttempts, 0)
	r.set("take_over_from", q.TakeOverFrom, "")
	r.setJSON("policy_definition_json", q.PolicyDefinition)
	if q.ForeignFailedQueue {
		r.set("failed_queue", map[string]any{"name": ref(object{"queue", q.FailedQueue}), "declare": false})
	} else if q.FailedQueue != "" {
		r.set("failed_queue", map[string]any{"name": q.FailedQueue})
	}
}

func (w *writer) addDelayed(e delayed.Exchange) *resource {
	r := w.inVhost("delayed_exchange", e.Name)
	r.set("type", e.Type, delayed.Types()[0])
	r.set("max_delay", e.MaxDelay.Spelling, "")
	r.set("precision", e.Precision.Spelling, delayed.DefaultPrecision)
	r.set("policy_priority", e.PolicyPriority, delayed.DefaultPolicyPriority)
	w.refs[object{"exchange", e.Name}] = expression(r.address() + ".name")
	w.refs[object{"exchange", e.Names().DeliverExchange()}] = expression(r.address() + ".deliver_exchange")
	w.serve("delayed_exchanges", r)
	return r
}
