package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// releasedQueues lists the queues that a change stops declaring but does not delete. These are work queues that the
// pipeline or an attachment still uses, and failed queues that others use. They are also queues that somebody else
// re-created without the pipeline's mark. If the pipeline is destroyed, next is nil.
func (p Pipeline) releasedQueues(next *Pipeline, vhost topology.Topology) []string {
	after := orNone(next)
	released := releasedFailedQueues(p, after, p.Names().OwnsBinding, vhost)
	byAttachment := Attached(p.Names(), vhost)
	for name, before := range p.WorkQueues {
		if !before.Declare {
			continue
		}
		workQueue, stays := after.WorkQueues[name]
		_, joined := slices.BinarySearch(byAttachment, name)
		foreign := !p.Names().Declared(vhost.Queues[name])
		if !workQueue.Declare && (stays || joined || foreign) {
			released = append(released, name)
		}
	}
	return released
}

// orNone is the next pipeline, without any queues if the pipeline is destroyed.
func orNone(next *Pipeline) Pipeline {
	if next == nil {
		return Pipeline{}
	}
	return *next
}

// bindingsThatGo lists the bindings of others that the broker deletes with the pipeline's exchanges and queues. It
// leaves out bindings of attachments, because a pipeline with attachments is never destroyed.
func (p Pipeline) bindingsThatGo(vhost topology.Topology) []topology.Binding {
	n, going := p.Names(), p.Owned(vhost)
	for _, name := range p.releasedQueues(nil, vhost) {
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
		leaveOut(leftToOthers(*prior, p, vhost), &planned.Topology)
	}
	for name, w := range p.WorkQueues {
		if _, exists := planned.Queues[name]; !exists {
			queue := topology.Queue{Type: w.Type}
			if !w.ByPolicy() {
				queue.Arguments = p.DeadLetterArguments(name)
			}
			planned.Queues[name] = queue
		}
		if _, declared := planned.Queues[w.FailedQueue]; !declared && w.FailedQueue != "" {
			planned.Queues[w.FailedQueue] = foreignFailedQueue(vhost.Queues[w.FailedQueue])
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

// leaveOut removes queues and their bindings from the topology. It changes the maps in place, so the caller must own
// them.
func leaveOut(queues []string, from *topology.Topology) {
	for _, name := range queues {
		delete(from.Queues, name)
	}
	from.Bindings = slices.DeleteFunc(slices.Clone(from.Bindings), func(b topology.Binding) bool {
		return !b.ToExchange && slices.Contains(queues, b.Destination)
	})
}

// foreignFailedQueue returns a failed queue that the pipeline does not declare. If the queue does not exist yet, it is
// a classic queue.
func foreignFailedQueue(live topology.Queue) topology.Queue {
	if live.Type == "" {
		return topology.Queue{Type: topology.Classic} // classic queues have no default limit
	}
	return live
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
	if name, routes := strings.CutSuffix(exchange, Names("").FailedRouteExchange()); routes {
		return name
	}
	i := strings.LastIndex(exchange, ".")
	if i < 0 || !Names(exchange[:i]).OwnsExchange(exchange) {
		return ""
	}
	return exchange[:i]
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
