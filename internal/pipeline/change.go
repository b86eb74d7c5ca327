package pipeline

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Owner describes the pipeline to a change. Bindings of others are deleted with its queues if that is forced.
func (p Pipeline) Owner() stored.Owner {
	n := p.Names()
	owner := stored.Owner{
		Identity: p.Identity(), Guard: p.Guard(), Shared: p.SharedQueues(), CatchAll: n.FailedQueue(), Notes: n.Notes(),
		ReturnsFrom: returnsFrom, FallsBack: n.Parks, AttachedBy: AttachedBy, ForceTakesBindings: true,
	}
	for _, delay := range p.Retired {
		owner.Retired = append(owner.Retired, n.RetryQueue(delay))
	}
	return owner
}

// Owner describes the attachment to a change. The objects that identify and guard are its pipeline's.
func (a Attachment) Owner() stored.Owner {
	return stored.Owner{Shared: a.AsPipeline().DeclaredFailedQueues(), FallsBack: a.Names().Parks, AttachedBy: AttachedBy}
}

// returnsFrom lists the queues whose messages come back by a return binding. It returns nil for other bindings.
func returnsFrom(b topology.Binding, vhost topology.Topology) []string {
	n, returns := ReturnedBy(b)
	if !returns {
		return nil
	}
	queues := []string{n.Inbox()}
	for name, queue := range vhost.Queues {
		if n.IsRetryQueue(name, queue) {
			queues = append(queues, name)
		}
	}
	return queues
}

// SharedQueues lists the declared work queues and their failed queues. Others publish to the work queues and empty the
// failed queues.
func (p Pipeline) SharedQueues() []string {
	names := p.DeclaredFailedQueues()
	for name, workQueue := range p.WorkQueues {
		if workQueue.Declare {
			names = append(names, name)
		}
	}
	return names
}

// Effects are what a change or a destroy does, if next is nil.
func (p Pipeline) Effects(next *Pipeline, vhost topology.Topology) stored.Effects {
	var after Pipeline
	if next != nil {
		after = *next
	}
	released, parked := stayingFailedQueues(p, after, p.Names().OwnsBinding, vhost)
	effects := stored.Effects{
		Released: append(released, p.releasedWorkQueues(after, vhost)...),
		Detached: p.detachedQueues(next, vhost), FailedQueues: parked,
	}
	if next == nil {
		effects.Bindings = p.bindingsThatGo(effects.Released, vhost)
	} else {
		effects.RestoresRoute = p.restoresRoute(vhost)
	}
	return effects
}

// Effects are what a change or a destroy does, if next is nil. Any other change that detaches the queue is a replacement.
func (a Attachment) Effects(next *Attachment, vhost topology.Topology) stored.Effects {
	var effects stored.Effects
	var after Pipeline
	if next != nil {
		after = next.AsPipeline()
	} else {
		effects.Detached = []string{a.Queue}
	}
	effects.Released, effects.FailedQueues = stayingFailedQueues(a.AsPipeline(), after, a.parks, vhost)
	return effects
}

// detachedQueues lists the work queues that a change detaches. If the pipeline is destroyed, next is nil, and the list
// also has queues outside the pipeline whose own arguments dead-letter to it.
func (p Pipeline) detachedQueues(next *Pipeline, vhost topology.Topology) []string {
	queues := slices.Collect(maps.Keys(p.WorkQueues))
	if next != nil {
		queues = slices.DeleteFunc(queues, func(name string) bool { _, stays := next.WorkQueues[name]; return stays })
	} else {
		for name, queue := range vhost.Queues {
			exchange, _ := queue.Arguments["x-dead-letter-exchange"].(string)
			if p.DeadLettersTo(exchange) {
				queues = append(queues, name)
			}
		}
	}
	return topology.Distinct(queues)
}

// releasedWorkQueues lists the work queues that a change stops declaring but does not delete. The pipeline or an
// attachment still uses them, or somebody else re-created them without the pipeline's mark.
func (p Pipeline) releasedWorkQueues(after Pipeline, vhost topology.Topology) []string {
	var released []string
	byAttachment := Attached(p.Names(), vhost)
	for name, before := range p.WorkQueues {
		if !before.Declare {
			continue
		}
		workQueue, stays := after.WorkQueues[name]
		_, joined := slices.BinarySearch(byAttachment, name)
		foreign := !p.Names().declared(vhost.Queues[name])
		if !workQueue.Declare && (stays || joined || foreign) {
			released = append(released, name)
		}
	}
	return released
}

// bindingsThatGo lists the bindings of others that the broker deletes with the pipeline's exchanges and queues, except
// the released ones. It leaves out bindings of attachments, because a pipeline with attachments is never destroyed.
func (p Pipeline) bindingsThatGo(released []string, vhost topology.Topology) []topology.Binding {
	n, going := p.Names(), p.Owned(vhost)
	for _, name := range released {
		delete(going.Queues, name)
	}
	going = topology.Merge(going, topology.Topology{Exchanges: p.Expand().Exchanges}) // a missing exchange still has its notes
	return n.Notes().WithNoted(vhost, func(b topology.Binding) bool {
		_, ofAttachment := b.Arguments[AttachmentArgument]
		return going.Meets(b) && !n.OwnsBinding(b) && !ofAttachment
	})
}

// restoresRoute reports whether an apply restores a missing route for dead letters or re-creates an exchange.
// Dead letters that waited for a route can then move again.
func (p Pipeline) restoresRoute(live topology.Topology) bool {
	n, changes := p.Names(), topology.Diff(p.Expand(), live)
	missing := changes.Create
	_, noInbox := missing.Queues[n.Inbox()]
	_, noFailed := missing.Queues[n.FailedQueue()]
	// The worker publishes to this exchange itself, so its messages never wait as dead letters.
	isRoute := func(b topology.Binding) bool {
		return !p.HasWorker() || b.Source != n.RetryExchange() && b.Source != n.FailedRouteExchange()
	}
	return noInbox || noFailed || len(missing.Exchanges)+len(changes.Replace.Exchanges) > 0 || slices.ContainsFunc(missing.Bindings, isRoute)
}

// AfterApply returns the vhost as it will be after the apply, without the objects that belong only to other pipelines.
// If the pipeline is new, prior is nil.
func (p Pipeline) AfterApply(prior *Pipeline, vhost topology.Vhost) topology.Vhost {
	planned := WithoutOthers(vhost, p.Name)
	replaced := p.Owned(planned.Topology)
	if prior != nil {
		replaced = topology.Merge(replaced, prior.Owned(planned.Topology))
	}
	planned.Topology = topology.Merge(planned.Without(replaced), p.Expand())
	if prior != nil {
		left := leftToOthers(*prior, p, vhost)
		for _, name := range left {
			delete(planned.Queues, name)
		}
		planned.Bindings = slices.DeleteFunc(planned.Bindings, func(b topology.Binding) bool {
			return !b.ToExchange && slices.Contains(left, b.Destination)
		})
	}
	for name, w := range p.WorkQueues {
		if _, exists := planned.Queues[name]; !exists {
			queue := topology.Queue{Type: w.Type}
			if !w.ByPolicy() {
				queue.Arguments = p.DeadLetterArguments(name)
			}
			planned.Queues[name] = queue
		}
	}
	for _, name := range p.FailedQueues() {
		if _, exists := planned.Queues[name]; !exists {
			queue := vhost.Queues[name]
			queue.Type = cmp.Or(queue.Type, topology.Classic) // not made yet; classic queues have no default limit
			planned.Queues[name] = queue
		}
	}
	return planned
}

// leftToOthers lists the work queues that this pipeline gave up, now or earlier, and that another pipeline has.
func leftToOthers(prior, next Pipeline, vhost topology.Vhost) []string {
	var gone []string
	others := ForeignTo(vhost, []string{prior.Name, next.Name})
	for _, name := range slices.AppendSeq(slices.Clone(next.Detached), maps.Keys(prior.WorkQueues)) {
		_, stays := next.WorkQueues[name]
		if !stays && slices.ContainsFunc(others.OwnersOf(name), func(o QueueOwner) bool { return o.AsWorkQueue }) {
			gone = append(gone, name)
		}
	}
	return gone
}

// WithoutOthers leaves out the exchanges, queues, bindings and policies of other pipelines.
func WithoutOthers(v topology.Vhost, name string) topology.Vhost {
	others := map[string]bool{}
	for _, other := range Pipelines(v.Topology) {
		if other != name {
			others[other] = true
		}
	}
	if len(others) == 0 {
		return v
	}
	rest := v
	rest.Topology = topology.Topology{Exchanges: maps.Clone(v.Exchanges), Queues: maps.Clone(v.Queues), Policies: maps.Clone(v.Policies)}
	maps.DeleteFunc(rest.Exchanges, func(exchange string, _ topology.Exchange) bool { return others[OwnerOfExchange(exchange)] })
	maps.DeleteFunc(rest.Queues, func(queue string, _ topology.Queue) bool { return others[OwnerOfQueue(queue)] })
	maps.DeleteFunc(rest.Policies, func(policy string, p topology.Policy) bool { return others[OwnerOfPolicy(policy, p)] })
	for _, b := range v.Bindings {
		if !others[OwnerOfExchange(b.Source)] && (b.ToExchange || !others[OwnerOfQueue(b.Destination)]) {
			rest.Bindings = append(rest.Bindings, b)
		}
	}
	return rest
}

// OwnerOfExchange returns the pipeline whose exchange would have this name, or "".
func OwnerOfExchange(exchange string) string {
	for _, suffix := range ownExchanges {
		if name, is := strings.CutSuffix(exchange, suffix); is {
			return name
		}
	}
	return ""
}

// OwnerOfQueue returns the pipeline whose own queue would have this name, or "".
func OwnerOfQueue(queue string) string {
	for _, part := range []string{Names("").Inbox(), Names("").FailedQueue(), Names("").retryQueuePrefix()} {
		if i := strings.LastIndex(queue, part); i > 0 && Names(queue[:i]).OwnsQueue(queue) {
			return queue[:i]
		}
	}
	return ""
}

// InterruptedCreation reports whether the vhost holds only the objects that a creation makes before the definition,
// unchanged and without bindings. Such a pipeline cannot be imported, and a new creation can continue safely because
// the objects belong to no one else.
func (p Pipeline) InterruptedCreation(vhost topology.Topology) bool {
	made := p.Identity()
	made.Bindings, made.Policies = nil, p.Guard()
	return topology.Untouched(p.Owned(vhost), made, vhost)
}

// TakeOverArgument marks the return binding of a queue that this pipeline takes over, and names the other pipeline.
// While both have the queue, the mark shows which one will keep it.
const TakeOverArgument = "retry-take-over-from"

// DetachedArgument marks the return binding of a former work queue. The binding stays for messages that still wait in
// the pipeline.
const DetachedArgument = "retry-detached"

// CannotBeMarked reports whether bindings to the queue cannot carry a mark. RabbitMQ's management API fails if a
// binding has arguments and its key contains a ~ (rabbit_mgmt_format:pack_binding_props).
func CannotBeMarked(queue string) bool { return strings.Contains(queue, "~") }

func (w WorkQueue) takeOver(b topology.Binding) topology.Binding {
	if w.TakeOverFrom == "" {
		return b
	}
	return marked(b, TakeOverArgument, w.TakeOverFrom)
}

func marked(b topology.Binding, argument string, value any) topology.Binding {
	arguments := topology.Arguments{argument: value}
	maps.Copy(arguments, b.Arguments)
	b.Arguments = arguments
	return b
}

// takenOverFrom returns the pipeline that a take-over mark names, and the binding without the mark.
func takenOverFrom(b topology.Binding) (pipeline string, plain topology.Binding) {
	pipeline, marked := b.Arguments[TakeOverArgument].(string)
	if marked {
		b.Arguments = maps.Clone(b.Arguments)
		delete(b.Arguments, TakeOverArgument)
	}
	return pipeline, b
}

// detachedBinding brings waiting messages back to a former work queue.
func (n Names) detachedBinding(queue string) topology.Binding {
	return marked(n.ReturnBinding(queue), DetachedArgument, string(n))
}

// IsDetached reports whether a pipeline has left the binding to a former work queue.
func IsDetached(b topology.Binding) bool {
	n, returns := ReturnedBy(b)
	return returns && b.Equal(n.detachedBinding(b.Destination))
}

// Detached lists the former work queues that stay bound for waiting messages.
func Detached(n Names, objects topology.Topology) []string {
	var queues []string
	for _, b := range objects.Bindings {
		if b.Equal(n.detachedBinding(b.Destination)) {
			queues = append(queues, b.Destination)
		}
	}
	slices.Sort(queues)
	return queues
}

// Leaving lists the work queues that a change from prior to next detaches but leaves bound for waiting messages. It
// leaves out declared queues, which are deleted, and queues whose names cannot be marked. Those are unbound at once,
// and the worker publishes their returning messages by queue name. IsBound reports whether a binding exists: a missing
// one was lost with its queue.
func Leaving(prior, next Pipeline, isBound func(topology.Binding) bool) []string {
	var queues []string
	for name, w := range prior.WorkQueues {
		_, stays := next.WorkQueues[name]
		if !stays && !w.Declare && !CannotBeMarked(name) && isBound(w.takeOver(prior.Names().ReturnBinding(name))) {
			queues = append(queues, name)
		}
	}
	slices.Sort(queues)
	return queues
}

// StrongestPolicy finds the first policy that belongs to the pipeline or one of its attachments. The list holds the
// policies that match a queue, strongest first.
func StrongestPolicy(n Names, matching []topology.NamedPolicy) (strongest topology.NamedPolicy, found bool) {
	i := slices.IndexFunc(matching, func(p topology.NamedPolicy) bool { return n.NamesPolicy(p.Name) })
	if i < 0 {
		return strongest, false
	}
	return matching[i], true
}

// PriorityOf returns the priority of the policy that attaches a work queue.
func (p Pipeline) PriorityOf(workQueue string) int {
	return p.PolicyPriority + p.WorkQueues[workQueue].precedence()
}
