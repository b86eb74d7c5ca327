// Package adopt writes the objects of a vhost as Terraform configuration, with an import block for each.
//
// It is pure.
package adopt

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/registry"
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
	found := newWriter(vhost, only)
	found.left, found.stage = nil, removed
	found.recognise(consumed)
	found.findRemoved()
	adopted := Adopted{Resources: map[string]int{}}
	all := found.stages()
	for i, at := range all {
		w := newWriter(vhost, only)
		w.stage, w.handMade = at, found.handMade
		folder := Folder{Name: fmt.Sprintf("step-%d", i), Files: w.write()}
		switch {
		case at != now:
			folder.Files["step.tf"] = w.explain(i, all)
		case len(all) > 1:
			folder.Files["step.tf"] = "# The vhost as it is. Step 1 comes next.\n"
		}
		if at == now {
			folder.Name, adopted.Left = "now", slices.Concat(w.left, found.left)
			for _, r := range w.resources {
				adopted.Resources[r.kind]++
			}
		}
		adopted.Folders = append(adopted.Folders, folder)
	}
	return adopted
}

func newWriter(vhost topology.Vhost, only *regexp.Regexp) *writer {
	w := &writer{vhost: vhost, only: only, owned: topology.New(), refs: map[string]string{}, gone: map[string]bool{}}
	w.goes, w.served, w.attachedQueues = map[string]bool{}, map[string][]any{}, map[string]bool{}
	w.labels, w.bound, w.lookup = map[string]bool{}, map[bindingKey]bool{}, topology.NewLookup(vhost)
	w.findOwners()
	return w
}

// write returns the texts of the files by name.
func (w *writer) write() map[string]string {
	if w.stage == removed {
		w.findRemoved()
	}
	w.addExchanges()
	w.addQueues()
	if w.stage >= created {
		w.addSuccessors()
	}
	w.addOwners()
	w.addBindings()
	w.addPolicies("rabbitmq_policy", w.vhost.Policies)
	w.addPolicies("rabbitmq_operator_policy", w.vhost.OperatorPolicies)
	if w.stage > now {
		for _, each := range w.retries {
			w.addRetry(each)
		}
		for _, each := range w.delays {
			w.addDelay(each)
		}
	}
	return w.files()
}

// writer collects the resources of a vhost.
type writer struct {
	configuration
	vhost  topology.Vhost
	lookup topology.Lookup
	only   *regexp.Regexp
	left   []string

	handMade
	stage stage
	// goes has what this stage leaves out, by kind and name. Decisions are the lines that people complete.
	goes      map[string]bool
	decisions []string
	// served and permissions are expressions for the sidecar's configuration and permissions.
	served      map[string][]any
	permissions []string

	pipelines   []pipeline.Pipeline
	attachments []pipeline.Attachment
	delayed     []delayed.Exchange
	// owned are the objects of all of these, wanted or not.
	owned topology.Topology
	// refs has the expression for the name of an exchange, queue or pipeline, by kind and name.
	refs map[string]string
	// attachedQueues are the work queues of all pipelines.
	attachedQueues map[string]bool
	// bound has the owned bindings, and gone what has no resource, by kind and name.
	bound map[bindingKey]bool
	gone  map[string]bool
}

func (w *writer) wants(names ...string) bool {
	return w.only == nil || slices.ContainsFunc(names, w.only.MatchString)
}

// ref is the name of an exchange, queue or pipeline: a reference, if the configuration has it.
func (w *writer) ref(kind, name string) any {
	if reference, has := w.refs[kind+name]; has {
		return expression(reference)
	}
	return name
}

func (w *writer) leave(format string, arguments ...any) {
	w.left = append(w.left, fmt.Sprintf(format, arguments...))
}

// ends are the two ends of a binding.
type ends struct {
	source, destination string
	toExchange          bool
}

// kindOf is the kind of a binding's destination.
func kindOf(b topology.Binding) string {
	if b.ToExchange {
		return "exchange"
	}
	return "queue"
}

func endsOf(b topology.Binding) ends { return ends{b.Source, b.Destination, b.ToExchange} }

// bindingKey identifies a binding of the vhost.
type bindingKey struct {
	ends
	propertiesKey string
}

func keyOf(b topology.Binding) bindingKey { return bindingKey{endsOf(b), b.PropertiesKey} }

// own notes the objects of a pipeline, an attachment or a delayed exchange, which are not resources by themselves.
func (w *writer) own(objects topology.Topology) {
	maps.Copy(w.owned.Exchanges, objects.Exchanges)
	maps.Copy(w.owned.Queues, objects.Queues)
	maps.Copy(w.owned.Policies, objects.Policies)
	for _, b := range objects.Bindings {
		w.bound[keyOf(b)] = true
	}
}

func (w *writer) findOwners() {
	all := w.vhost.Topology
	for _, name := range pipeline.Pipelines(all) {
		p, err := pipeline.Recover(name, w.vhost.Name, all)
		if err != nil {
			w.leave("pipeline %q: %s", name, err)
		} else if w.wants(name) {
			w.pipelines = append(w.pipelines, p)
		}
		w.own(p.Owned(all))
		for queue := range p.WorkQueues {
			w.attachedQueues[queue] = true
		}
		for _, queue := range pipeline.Attached(p.Names(), all) {
			w.attachedQueues[queue] = true
			if a, err := pipeline.RecoverAttachment(name, w.vhost.Name, queue, all); err == nil {
				w.attachments = append(w.attachments, a)
				w.own(a.Owned(all))
			}
		}
	}
	for _, name := range delayed.Found(all) {
		e, err := delayed.Recover(name, w.vhost.Name, all)
		if err != nil {
			w.leave("delayed exchange %q: %s", name, err)
			e.MaxDelay.Wait, e.Precision.Wait = time.Second, time.Second // its objects are found by their names
		} else if w.wants(name) {
			w.delayed = append(w.delayed, e)
		}
		w.own(e.Owned(all))
	}
}

// madeByOthers matches queues and exchanges that the broker, a plugin or a client makes for itself.
var madeByOthers = regexp.MustCompile(`^(amq\.gen-|federation: |mqtt-subscription-|stomp-subscription-)`)

// names are the objects that become resources of one kind, in order. Those that are not kept are left out.
func names[T any](w *writer, kind string, all, owned map[string]T, kept func(name string) bool) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		_, isOwned := owned[name]
		switch {
		case isOwned:
		case !kept(name):
			w.gone[kind+name] = true
			if w.wants(name) {
				w.leave("%s %q: it goes with its connection, or a plugin or client made it", kind, name)
			}
		case w.wants(name):
			found = append(found, name)
		}
	}
	return found
}

// inVhost adds a resource that is known by its name in the vhost.
func (w *writer) inVhost(kind, name string) *resource {
	r := w.add(kind, name, w.vhost.Name, name)
	r.set("name", name, false)
	r.set("vhost", w.vhost.Name, false)
	return r
}

func (w *writer) addExchanges() {
	declared := maps.Clone(w.vhost.Exchanges)
	maps.DeleteFunc(declared, func(name string, _ topology.Exchange) bool { return name == "" || strings.HasPrefix(name, "amq.") })
	kept := func(name string) bool { return !madeByOthers.MatchString(name) }
	for _, name := range names(w, "exchange", declared, w.owned.Exchanges, kept) {
		e, r := w.vhost.Exchanges[name], w.inVhost("rabbitmq_exchange", name)
		r.removed = w.goes["exchange"+name]
		r.set("type", e.Type, false)
		r.set("durable", false, !e.Transient)
		r.set("auto_delete", true, !e.AutoDelete)
		r.set("internal", true, !e.Internal)
		r.set("arguments", map[string]any(e.Arguments), len(e.Arguments) == 0)
		w.refs["exchange"+name] = r.address() + ".name"
	}
}

func (w *writer) addQueues() {
	kept := func(name string) bool { return !madeByOthers.MatchString(name) && !w.vhost.Queues[name].Exclusive }
	for _, name := range names(w, "queue", w.vhost.Queues, w.owned.Queues, kept) {
		w.addQueue(name, w.vhost.Queues[name]).removed = w.goes["queue"+name]
	}
}

func (w *writer) addQueue(name string, q topology.Queue) *resource {
	r := w.inVhost("rabbitmq_queue", name)
	r.set("type", q.Type, false)
	r.set("durable", false, !q.Transient)
	r.set("auto_delete", true, !q.AutoDelete)
	r.set("arguments", map[string]any(q.Arguments), len(q.Arguments) == 0)
	w.refs["queue"+name] = r.address() + ".name"
	return r
}

func (w *writer) addBindings() {
	bindings := slices.Clone(w.vhost.Bindings)
	topology.SortByText(bindings)
	between := map[ends][]topology.Binding{}
	for _, b := range bindings {
		between[endsOf(b)] = append(between[endsOf(b)], b)
	}
	for _, b := range bindings {
		kind := kindOf(b)
		if b.Source == "" || w.bound[keyOf(b)] || !w.wants(b.Source, b.Destination) || w.gone[kind+b.Destination] {
			continue
		}
		if b.PropertiesKey == "." || b.PropertiesKey == ".." {
			w.leave("binding %s: the management API cannot delete a binding with this key", b)
			continue
		}
		w.addBinding(b).end = topology.OnlyEnd(b, between[endsOf(b)])
	}
}

// addBinding adds a binding. If its queue gets a successor, the binding moves there.
func (w *writer) addBinding(b topology.Binding) *resource {
	kind, destination, moves := kindOf(b), b.Destination, false
	if !b.ToExchange {
		destination = w.destination(b.Destination)
		_, moves = w.successors[b.Destination]
	}
	label := b.Source + "_" + b.Destination
	if b.RoutingKey != "" && b.RoutingKey != b.Destination {
		label += "_" + b.RoutingKey
	}
	r := w.add("rabbitmq_binding", label, w.vhost.Name, b.Source, kind, b.Destination)
	r.removed = w.goes["exchange"+b.Source] || w.goes[kind+destination]
	r.set("vhost", w.vhost.Name, false)
	r.set("source", w.ref("exchange", b.Source), false)
	r.set("destination_type", kind, !b.ToExchange)
	r.set("destination", w.ref(kind, destination), false)
	r.set("routing_key", b.RoutingKey, b.RoutingKey == "")
	r.set("arguments", map[string]any(b.Arguments), len(b.Arguments) == 0)
	r.set("lifecycle", block{{"create_before_destroy", true}}, !moves)
	return r
}

func (w *writer) addPolicies(kind string, policies map[string]topology.Policy) {
	owned, defaultTarget := w.owned.Policies, "all"
	if kind == "rabbitmq_operator_policy" {
		owned, defaultTarget = nil, "queues"
	}
	for _, name := range names(w, "policy", policies, owned, func(string) bool { return true }) {
		p, r := policies[name], w.inVhost(kind, name)
		r.removed = kind == "rabbitmq_policy" && w.goes["policy"+name]
		r.set("pattern", p.Pattern, false)
		r.set("apply_to", p.ApplyTo, p.ApplyTo == defaultTarget)
		r.set("priority", p.Priority, p.Priority == 0)
		r.set("definition", map[string]any(p.Definition), false)
	}
}

func (w *writer) addOwners() {
	for _, p := range w.pipelines {
		w.addPipeline(p)
	}
	for _, a := range w.attachments {
		if w.wants(a.Pipeline, a.Queue) {
			w.addAttachment(a)
		}
	}
	for _, e := range w.delayed {
		w.addDelayed(e)
	}
}

func (w *writer) addPipeline(p pipeline.Pipeline) *resource {
	r := w.inVhost("rabbitmq_retry_pipeline", p.Name)
	r.set("engine", p.EngineName(), p.EngineName() == pipeline.EngineWorker)
	r.set("delays", texts(p.Definition().Delays), len(p.Delays) == 0)
	r.set("max_attempts", p.MaxAttempts, p.MaxAttempts == len(p.Delays)+1)
	r.set("max_age", p.MaxAge.Spelling, p.MaxAge.Spelling == "")
	r.set("retry_on", texts(p.RetryOn), len(p.RetryOn) == 1)
	r.set("queue_type", p.QueueType, p.QueueType == topology.Quorum)
	r.set("policy_priority", p.PolicyPriority, p.PolicyPriority == pipeline.DefaultPolicyPriority)
	r.set("policy_definition_json", asJSON(p.PolicyDefinition), len(p.PolicyDefinition) == 0)
	var queues []attribute
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		queue := resource{attributes: []attribute{}}
		queue.addWorkQueue(p.WorkQueues[name], w)
		queues = append(queues, attribute{w.key(name), queue.attributes})
	}
	r.set("work_queues", queues, len(queues) == 0)
	w.refs["pipeline"+p.Name] = r.address() + ".name"
	w.refs["exchange"+p.DeadLetterExchange()] = r.address() + ".dead_letter_exchange"
	w.refs["queue"+p.Names().FailedQueue()] = r.address() + ".failed_queue_name"
	if p.EngineName() == pipeline.EngineWorker {
		w.serve("pipelines", r)
	}
	return r
}

// key is the key of a work queue: a reference, if the configuration has the queue.
func (w *writer) key(queue string) string {
	if reference, has := w.refs["queue"+queue]; has {
		return "(" + reference + ")"
	}
	return quoted(queue)
}

func (w *writer) addAttachment(a pipeline.Attachment) {
	r := w.add("rabbitmq_retry_attachment", a.Queue, w.vhost.Name, a.Pipeline, a.Queue)
	r.set("pipeline", w.ref("pipeline", a.Pipeline), false)
	r.set("vhost", w.vhost.Name, false)
	r.set("queue", w.ref("queue", a.Queue), false)
	engine := a.AsPipeline().EngineName()
	r.set("engine", engine, engine == pipeline.EngineWorker)
	r.addWorkQueue(a.WorkQueue, w)
	r.set("policy_priority", a.PolicyPriority, a.PolicyPriority == pipeline.DefaultPolicyPriority)
}

func (r *resource) addWorkQueue(q pipeline.WorkQueue, w *writer) {
	r.set("type", q.Type, q.Type == topology.Quorum)
	r.set("declare", true, !q.Declare)
	r.set("arguments_json", asJSON(q.Arguments), len(q.Arguments) == 0)
	r.set("attach", q.Attach, q.Attach == pipeline.AttachPolicy)
	r.set("dead_letter_strategy", q.DeadLetterStrategy, q.DeadLetterStrategy == "")
	r.set("max_attempts", q.MaxAttempts, q.MaxAttempts == 0)
	r.set("take_over_from", q.TakeOverFrom, q.TakeOverFrom == "")
	r.set("policy_definition_json", asJSON(q.PolicyDefinition), len(q.PolicyDefinition) == 0)
	failed := []attribute{{"name", q.FailedQueue}}
	if q.ForeignFailedQueue {
		failed = []attribute{{"name", w.ref("queue", q.FailedQueue)}, {"declare", false}}
	}
	r.set("failed_queue", failed, q.FailedQueue == "")
}

func (w *writer) addDelayed(e delayed.Exchange) *resource {
	r := w.inVhost("rabbitmq_delayed_exchange", e.Name)
	r.set("type", e.Type, e.Type == delayed.Types()[0])
	r.set("max_delay", e.MaxDelay.Spelling, e.MaxDelay.Spelling == "")
	r.set("precision", e.Precision.Spelling, e.Precision.Spelling == delayed.DefaultPrecision)
	r.set("policy_priority", e.PolicyPriority, e.PolicyPriority == delayed.DefaultPolicyPriority)
	w.refs["exchange"+e.Name] = r.address() + ".name"
	w.refs["exchange"+e.Names().DeliverExchange()] = r.address() + ".deliver_exchange"
	w.serve("delayed_exchanges", r)
	return r
}

func texts(of []string) []any {
	var values []any
	for _, text := range of {
		values = append(values, text)
	}
	return values
}

// Decisions is the file that people complete.
const Decisions = "decide.tf"

// files says which file a resource is written to.
var files = map[string]string{
	"rabbitmq_exchange": "exchanges.tf", "rabbitmq_queue": "queues.tf", "rabbitmq_binding": "bindings.tf",
	"rabbitmq_policy": "policies.tf", "rabbitmq_operator_policy": "policies.tf",
}

// files returns the texts of the files by name. All stages have the same files, so that each can be copied over another.
func (w *writer) files() map[string]string {
	blocks := map[string][]string{"versions.tf": {versions}}
	for _, r := range w.resources {
		file := cmp.Or(files[r.kind], "retries.tf")
		blocks[file], blocks["imports.tf"] = slices.Grow(blocks[file], 1), slices.Grow(blocks["imports.tf"], 1)
		if r.removed {
			continue
		}
		blocks[file] = append(blocks[file], fmt.Sprintf("resource %q %q %s\n", r.kind, r.label, body(r.attributes, "")))
		if r.id != nil && w.stage == now {
			blocks["imports.tf"] = append(blocks["imports.tf"], r.imported())
		}
	}
	if len(w.retries)+len(w.delays) > 0 { // a copied folder must replace every file of the one before
		for _, file := range []string{"bindings.tf", "retries.tf"} {
			blocks[file] = slices.Grow(blocks[file], 1)
		}
	}
	if len(w.decisions) > 0 {
		blocks[Decisions] = []string{"locals {\n" + strings.Join(w.decisions, "\n") + "}\n"}
	}
	written := map[string]string{}
	for file, texts := range blocks {
		written[file] = strings.Join(texts, "\n")
	}
	return written
}

// versions names the provider. Terraform has import blocks from 1.5 on.
const versions = `terraform {
  required_version = ">= 1.5"

  required_providers {
    rabbitmq = {
      source = "` + registry.Source + `"
    }
  }
}

provider "rabbitmq" {}
`
