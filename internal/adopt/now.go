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
	w := &writer{
		Adopted: Adopted{Resources: map[string]int{}}, vhost: vhost, only: only, owned: topology.New(), labels: map[string]bool{},
		queues: map[string]*queue{}, refs: map[object]string{}, goes: map[object]bool{}, served: map[string]any{}, points: map[stage]string{},
	}
	w.addOwners()
	w.findQueues(consumed)
	w.recognise()
	w.addObjects()
	w.addReplacements()
	w.findRemoved()
	slices.Sort(w.Left)
	stages := slices.DeleteFunc([]stage{now, created, attached, switched, removed}, func(at stage) bool {
		return at == created && len(w.decisions) == 0 || at > created && w.points[at] == ""
	})
	for number, at := range stages {
		folder := Folder{"now", w.files(at)}
		folder.Files["step.tf"] = "# The vhost as it is.\n"
		if at > now {
			folder.Name = fmt.Sprintf("step-%d", number)
			folder.Files["step.tf"] = w.explain(at, number, len(stages)-1, w.Folders[number-1].Name)
		}
		w.Folders = append(w.Folders, folder)
	}
	return w.Adopted
}

// writer collects the resources of a vhost, which have the same labels at all stages.
type writer struct {
	Adopted
	vhost topology.Vhost
	only  *regexp.Regexp
	// owned are the objects of pipelines and delayed exchanges. The others get a resource each, or are left out.
	owned     topology.Topology
	resources []*resource
	labels    map[string]bool
	// refs has references to the names of objects that the configuration has.
	refs map[object]string
	// unreadable policies could apply to any queue.
	unreadable []topology.NamedPolicy
	queues     map[string]*queue
	// names has all queues and exchanges.
	names   []string
	retries []retry
	// decisions are the lines that people complete, and points are what the steps say of the vhost.
	decisions []string
	points    map[stage]string
	// goes says of the objects of the retries whether the last stage does not have them, and stays is the list of those that it has.
	// kept says that one more was found to stay.
	goes  map[object]bool
	kept  bool
	stays string
	// served and permissions are expressions for the sidecar's configuration and permissions.
	served      map[string]any
	permissions []string
}

func (w *writer) wants(name string) bool { return w.only == nil || w.only.MatchString(name) }

func (w *writer) leave(format string, arguments ...any) {
	w.Left = append(w.Left, fmt.Sprintf(format, arguments...))
}

func (w *writer) point(at stage, format string, arguments ...any) {
	w.points[at] += "\n* " + fmt.Sprintf(format, arguments...)
}

// addOwners adds pipelines, attachments and delayed exchanges. Their objects are no resources by themselves.
func (w *writer) addOwners() {
	all := w.vhost.Topology
	for _, name := range pipeline.Pipelines(all) {
		p, err := pipeline.Recover(name, w.vhost.Name, all)
		if w.takes(p.Owned(all), fmt.Sprintf("pipeline %q", name), err, name) {
			w.addPipeline(p)
		}
		for _, queue := range pipeline.Attached(p.Names(), all) {
			a, err := pipeline.RecoverAttachment(name, w.vhost.Name, queue, all)
			if w.takes(a.Owned(all), fmt.Sprintf("attachment of %q", queue), err, name, queue) {
				w.addAttachment(a)
			}
		}
	}
	for _, name := range delayed.Found(all) {
		e, err := delayed.Recover(name, w.vhost.Name, all)
		if err != nil {
			e.MaxDelay.Wait, e.Precision.Wait = time.Second, time.Second // its objects are found by their names
		}
		if w.takes(e.Owned(all), fmt.Sprintf("delayed exchange %q", name), err, name) {
			w.addDelayed(e)
		}
	}
}

// takes notes an owner's objects, and reports whether it is wanted and can be read.
func (w *writer) takes(objects topology.Topology, owner string, err error, names ...string) bool {
	w.owned = topology.Merge(w.owned, objects)
	if err != nil {
		w.leave("%s: %s", owner, err)
	}
	return err == nil && slices.ContainsFunc(names, w.wants)
}

// madeByOthers matches queues and exchanges that the broker, a plugin or a client makes for itself.
var madeByOthers = regexp.MustCompile(`^(amq\.gen-|federation: |mqtt-subscription-|stomp-subscription-)`)

func (w *writer) isTemporary(o object) bool {
	return madeByOthers.MatchString(o.name) || o.kind == "queue" && w.vhost.Queues[o.name].Exclusive
}

// holds reports whether a queue or exchange gets a resource, and names it if it is wanted and none can hold it.
func (w *writer) holds(o object) bool {
	if w.wants(o.name) && w.isTemporary(o) {
		w.leave("%s: it goes with its connection, or a plugin or client made it", o)
	}
	return w.wants(o.name) && !w.isTemporary(o)
}

func sorted[T any](objects map[string]T) []string { return slices.Sorted(maps.Keys(objects)) }

// addObjects adds what is in the vhost, besides the owners and their objects.
func (w *writer) addObjects() {
	rest := w.vhost.Without(w.owned)
	for _, name := range sorted(rest.Exchanges) {
		if name != "" && !strings.HasPrefix(name, "amq.") && w.holds(object{"exchange", name}) {
			e, r := rest.Exchanges[name], w.inVhost("exchange", name)
			r.set("type", e.Type)
			r.set("durable", !e.Transient, true)
			r.set("auto_delete", e.AutoDelete, false)
			r.set("internal", e.Internal, false)
			r.set("arguments", map[string]any(e.Arguments))
		}
	}
	for _, name := range sorted(rest.Queues) {
		if w.holds(object{"queue", name}) {
			w.addQueue(name, rest.Queues[name])
		}
	}
	w.addBindings(rest.Bindings)
	w.addPolicies("policy", rest.Policies, "all")
	w.addPolicies("operator_policy", w.vhost.OperatorPolicies, "queues")
}

// inVhost adds a resource that is known by its name in the vhost.
func (w *writer) inVhost(kind, name string) *resource {
	o := object{kind, name}
	r := w.add(kind, name, o)
	r.id = importID(w.vhost.Name, name)
	r.set("name", name)
	r.set("vhost", w.vhost.Name)
	w.refs[o] = r.address() + ".name"
	return r
}

func (w *writer) addQueue(name string, q topology.Queue) *resource {
	r := w.inVhost("queue", name)
	r.set("type", q.Type)
	r.set("durable", !q.Transient, true)
	r.set("auto_delete", q.AutoDelete, false)
	r.set("arguments", map[string]any(q.Arguments))
	return r
}

func (w *writer) addPolicies(kind string, policies map[string]topology.Policy, appliesTo string) {
	for _, name := range slices.DeleteFunc(sorted(policies), func(name string) bool { return !w.wants(name) }) {
		p, r := policies[name], w.inVhost(kind, name)
		r.set("pattern", p.Pattern)
		r.set("apply_to", p.ApplyTo, appliesTo)
		r.set("priority", p.Priority, 0)
		r.setBetween(now, removed, "definition", map[string]any(p.Definition))
	}
}

// endsOf are what a binding leads from and to.
func endsOf(b topology.Binding) [2]object {
	to := object{"queue", b.Destination}
	if b.ToExchange {
		to.kind = "exchange"
	}
	return [2]object{{"exchange", b.Source}, to}
}

func (w *writer) addBindings(bindings []topology.Binding) {
	between := map[[2]object][]topology.Binding{}
	for _, b := range w.vhost.Bindings {
		between[endsOf(b)] = append(between[endsOf(b)], b)
	}
	topology.SortByText(bindings)
	for _, b := range bindings {
		ends := endsOf(b)
		switch {
		case b.Source == "" || w.isTemporary(ends[1]) || !w.wants(b.Source) && !w.wants(b.Destination):
		case b.PropertiesKey == "." || b.PropertiesKey == "..":
			w.leave("binding %s: the management API cannot delete a binding with this key", b)
		default:
			r := w.addBinding(b)
			r.id = importID(w.vhost.Name, b.Source, ends[1].kind, b.Destination) + "/" + topology.OnlyEnd(b, between[ends])
		}
	}
}

// addBinding adds a binding. If its queue gets a successor, the binding moves there.
func (w *writer) addBinding(b topology.Binding) *resource {
	label := b.Source + "_" + b.Destination
	if b.RoutingKey != "" && b.RoutingKey != b.Destination {
		label += "_" + b.RoutingKey
	}
	from, to := endsOf(b)[0], endsOf(b)[1]
	next := w.afterSwitch(to)
	r := w.add("binding", label, from, next)
	r.set("vhost", w.vhost.Name)
	r.set("source", from)
	r.set("destination_type", to.kind, "queue")
	r.setBetween(now, attached, "destination", to)
	r.setBetween(switched, removed, "destination", next)
	r.set("routing_key", b.RoutingKey, "")
	r.set("arguments", map[string]any(b.Arguments))
	if next != to {
		r.set("", expression("lifecycle {\ncreate_before_destroy = true\n}"))
	}
	return r
}

func (w *writer) addPipeline(p pipeline.Pipeline) *resource {
	r := w.inVhost("retry_pipeline", p.Name)
	r.set("engine", p.EngineName(), pipeline.EngineWorker)
	r.set("delays", p.Definition().Delays)
	r.set("max_attempts", p.MaxAttempts, len(p.Delays)+1, 0)
	r.set("max_age", p.MaxAge.Spelling, "")
	if len(p.RetryOn) > 1 {
		r.set("retry_on", p.RetryOn)
	}
	r.set("queue_type", p.QueueType, topology.Quorum)
	r.set("policy_priority", p.PolicyPriority, pipeline.DefaultPolicyPriority)
	r.set("policy_definition_json", encoded(p.PolicyDefinition))
	r.set("work_queues", p.WorkQueues)
	w.refs[object{"exchange", p.DeadLetterExchange()}] = r.address() + ".dead_letter_exchange"
	w.refs[object{"queue", p.Names().FailedQueue()}] = r.address() + ".failed_queue_name"
	if p.EngineName() == pipeline.EngineWorker {
		w.serve("pipelines", r)
	}
	return r
}

// workQueues is a table of work queues. Its keys are references, if the configuration has the queues.
func (w *writer) workQueues(queues map[string]pipeline.WorkQueue) *resource {
	table := new(resource)
	for _, name := range sorted(queues) {
		key, queue := w.written(object{"queue", name}), new(resource)
		if key[0] != '"' {
			key = "(" + key + ")"
		}
		queue.describe(queues[name])
		table.set(key, queue)
	}
	return table
}

func (w *writer) addAttachment(a pipeline.Attachment) {
	r := w.add("retry_attachment", a.Queue, object{"retry_attachment", a.Queue})
	r.id = importID(w.vhost.Name, a.Pipeline, a.Queue)
	r.set("pipeline", object{"retry_pipeline", a.Pipeline})
	r.set("vhost", w.vhost.Name)
	r.set("queue", object{"queue", a.Queue})
	r.set("engine", a.AsPipeline().EngineName(), pipeline.EngineWorker)
	r.describe(a.WorkQueue)
	r.set("policy_priority", a.PolicyPriority, pipeline.DefaultPolicyPriority)
}

// describe sets what pipelines and attachments say of a work queue.
func (r *resource) describe(q pipeline.WorkQueue) {
	r.set("type", q.Type, topology.Quorum)
	r.set("declare", q.Declare, false)
	r.set("arguments_json", encoded(q.Arguments))
	r.set("attach", q.Attach, pipeline.AttachPolicy)
	r.set("dead_letter_strategy", q.DeadLetterStrategy, "")
	r.set("max_attempts", q.MaxAttempts, 0)
	r.set("take_over_from", q.TakeOverFrom, "")
	r.set("policy_definition_json", encoded(q.PolicyDefinition))
	if q.ForeignFailedQueue {
		r.set("failed_queue", map[string]any{"name": object{"queue", q.FailedQueue}, "declare": false})
	} else if q.FailedQueue != "" {
		r.set("failed_queue", map[string]any{"name": q.FailedQueue})
	}
}

func (w *writer) addDelayed(e delayed.Exchange) *resource {
	r := w.inVhost("delayed_exchange", e.Name)
	r.set("type", e.Type, delayed.Types()[0])
	r.set("max_delay", e.MaxDelay.Spelling, "")
	r.set("precision", e.Precision.Spelling, delayed.DefaultPrecision, "")
	r.set("policy_priority", e.PolicyPriority, delayed.DefaultPolicyPriority)
	w.refs[object{"exchange", e.Name}] = r.address() + ".name"
	w.refs[object{"exchange", e.Names().DeliverExchange()}] = r.address() + ".deliver_exchange"
	w.serve("delayed_exchanges", r)
	return r
}
