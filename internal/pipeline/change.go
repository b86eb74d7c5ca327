package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ReleasedQueues lists the queues that a change of the pipeline releases in place of deleting them: work queues that are still
// attached, be it by an attachment, but no longer declared, those that somebody else re-created, which do not carry the pipeline's
// mark, and failed queues that others use. Next is nil for a destroy.
func (p Pipeline) ReleasedQueues(next *Pipeline, vhost topology.Topology) []string {
	released := releasedFailedQueues(p, next, vhost)
	byAttachment := Attached(p.Names(), vhost)
	for name, before := range p.WorkQueues {
		if !before.Declare {
			continue
		}
		attached, declared := false, false
		if next != nil {
			after, stays := next.WorkQueues[name]
			attached, declared = stays, after.Declare
		}
		_, joined := slices.BinarySearch(byAttachment, name)
		foreign := !p.Names().Declared(vhost.Queues[name])
		if !declared && (attached || joined || foreign) {
			released = append(released, name)
		}
	}
	return released
}

// BindingsThatGo lists the bindings of others that are deleted with the pipeline, since they begin or end at one of its
// exchanges, or end at one of its queues. Those of attachments do not count: a pipeline that has any is not destroyed.
func (p Pipeline) BindingsThatGo(vhost topology.Topology) []topology.Binding {
	n, going := p.Names(), p.Owned(vhost)
	for _, name := range p.ReleasedQueues(nil, vhost) {
		delete(going.Queues, name)
	}
	going = topology.Merge(going, topology.Topology{Exchanges: p.Expand().Exchanges}) // one that is missing has notes
	return n.Notes().WithNoted(vhost, func(b topology.Binding) bool {
		_, ofAttachment := b.Arguments[AttachmentArgument]
		return going.Meets(b) && !n.OwnsBinding(b) && !ofAttachment
	})
}

// RestoresDeadLetterRoute reports whether dead letters may be pending because they had no way to go, and have one again
// once what is missing of the pipeline is restored, or an exchange is re-created.
func (p Pipeline) RestoresDeadLetterRoute(live topology.Topology) bool {
	n, changes := p.Names(), topology.Diff(p.Expand(), live)
	missing := changes.Create
	_, noInbox := missing.Queues[n.Inbox()]
	_, noFailed := missing.Queues[n.FailedQueue()]
	// What the worker publishes to the retry exchange never becomes a pending dead letter.
	isRoute := func(b topology.Binding) bool {
		return !p.HasWorker() || b.Source != n.RetryExchange() && b.Source != n.FailedRouteExchange()
	}
	return noInbox || noFailed || len(missing.Exchanges)+len(changes.Replace.Exchanges) > 0 || slices.ContainsFunc(missing.Bindings, isRoute)
}

// AfterApply is the vhost as it will be once the pipeline is applied, without what belongs to other
// pipelines alone. Prior is the pipeline as it was, nil if it is new.
func (p Pipeline) AfterApply(prior *Pipeline, vhost topology.Vhost) topology.Vhost {
	planned := withoutOtherPipelines(vhost, p.Name)
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
			planned.Queues[name] = topology.Queue{Type: w.Type}
		}
		if _, declared := planned.Queues[w.FailedQueue]; !declared && w.FailedQueue != "" {
			planned.Queues[w.FailedQueue] = foreignFailedQueue(vhost.Queues[w.FailedQueue])
		}
	}
	return planned
}

// leftToOthers lists the work queues that the pipeline had before, with this change or an earlier one, and that another one
// has now.
func leftToOthers(prior, next Pipeline, vhost topology.Vhost) []string {
	var gone []string
	others := ForeignTo(vhost, []string{prior.Name, next.Name})
	for _, name := range slices.AppendSeq(slices.Clone(next.Detached), maps.Keys(prior.WorkQueues)) {
		_, stays := next.WorkQueues[name]
		if !stays && slices.ContainsFunc(others.OwnersOf(name), func(o Owner) bool { return o.AsWorkQueue }) {
			gone = append(gone, name)
		}
	}
	return gone
}

// leaveOut takes queues, with their bindings, out of a vhost's maps, which nobody else uses.
func leaveOut(queues []string, from *topology.Topology) {
	for _, name := range queues {
		delete(from.Queues, name)
	}
	from.Bindings = slices.DeleteFunc(slices.Clone(from.Bindings), func(b topology.Binding) bool {
		return !b.ToExchange && slices.Contains(queues, b.Destination)
	})
}

// foreignFailedQueue is a failed queue that the pipeline does not declare, or not any more: as it is, or one about which nothing
// is known yet.
func foreignFailedQueue(live topology.Queue) topology.Queue {
	if live.Type == "" {
		return topology.Queue{Type: topology.Classic} // has no default limit
	}
	return live
}

// withoutOtherPipelines leaves out the exchanges, queues, bindings and policies of other pipelines.
func withoutOtherPipelines(v topology.Vhost, name string) topology.Vhost {
	others := map[string]bool{}
	for _, other := range Pipelines(v.Topology) {
		others[other] = other != name
	}
	rest := v
	rest.Topology = topology.Topology{Exchanges: maps.Clone(v.Exchanges), Queues: maps.Clone(v.Queues), Policies: maps.Clone(v.Policies)}
	maps.DeleteFunc(rest.Exchanges, func(exchange string, _ topology.Exchange) bool { return others[exchangeOwner(exchange)] })
	maps.DeleteFunc(rest.Queues, func(queue string, _ topology.Queue) bool { return others[ownerByName(queue)] })
	maps.DeleteFunc(rest.Policies, func(policy string, p topology.Policy) bool { return others[ofPipeline(policy, p)] })
	for _, b := range v.Bindings {
		if !others[exchangeOwner(b.Source)] && (b.ToExchange || !others[ownerByName(b.Destination)]) {
			rest.Bindings = append(rest.Bindings, b)
		}
	}
	return rest
}

// exchangeOwner is the pipeline that an exchange would belong to, "" if none.
func exchangeOwner(exchange string) string {
	if name, routes := strings.CutSuffix(exchange, Names("").FailedRouteExchange()); routes {
		return name
	}
	i := strings.LastIndex(exchange, ".")
	if i < 0 || !Names(exchange[:i]).OwnsExchange(exchange) {
		return ""
	}
	return exchange[:i]
}

// ownerByName is the pipeline that a queue would be one of the own queues of, "" if none.
func ownerByName(queue string) string {
	for _, part := range []string{Names("").Inbox(), Names("").FailedQueue(), Names("").retryQueuePrefix()} {
		if i := strings.LastIndex(queue, part); i > 0 && Names(queue[:i]).OwnsQueue(queue) {
			return queue[:i]
		}
	}
	return ""
}

// InterruptedCreation reports whether all that a vhost has of a new pipeline is what a creation makes before its
// definition, exactly as it would be made, and without a binding. It cannot be imported, and to go on from there
// takes nothing from anybody.
func (p Pipeline) InterruptedCreation(vhost topology.Topology) bool {
	made := p.Identity()
	made.Bindings, made.Policies = nil, p.Guard()
	return topology.Untouched(p.Owned(vhost), made, vhost)
}

// TakeOverArgument marks the return binding of a queue that is taken over from another pipeline, which it names: as long
// as both have the queue, the mark says which of them means to keep it.
const TakeOverArgument = "retry-take-over-from"

// DetachedArgument marks the return binding of a queue that is no work queue of the pipeline any more, while messages
// may still wait for their way back to it.
const DetachedArgument = "retry-detached"

// CannotBeMarked reports whether a binding to the queue can have no mark: RabbitMQ's management API fails over a key
// with a ~ next to arguments (rabbit_mgmt_format:pack_binding_props).
func CannotBeMarked(queue string) bool { return strings.Contains(queue, "~") }

// takeOver marks a return binding, if the queue is taken over.
func (w WorkQueue) takeOver(b topology.Binding) topology.Binding {
	if w.TakeOverFrom == "" {
		return b
	}
	return marked(b, TakeOverArgument, w.TakeOverFrom)
}

// marked is a binding with one argument more.
func marked(b topology.Binding, argument string, value any) topology.Binding {
	arguments := topology.Arguments{argument: value}
	maps.Copy(arguments, b.Arguments)
	b.Arguments = arguments
	return b
}

// takenOverFrom reads the mark of a return binding, and returns the binding without.
func takenOverFrom(b topology.Binding) (pipeline string, plain topology.Binding) {
	pipeline, marked := b.Arguments[TakeOverArgument].(string)
	if marked {
		b.Arguments = maps.Clone(b.Arguments)
		delete(b.Arguments, TakeOverArgument)
	}
	return pipeline, b
}

// detachedBinding brings messages back to a queue that is no work queue any more.
func (n Names) detachedBinding(queue string) topology.Binding {
	return marked(n.ReturnBinding(queue), DetachedArgument, string(n))
}

// Detached lists the queues that are no work queues of the pipeline any more, but still bound for what waits.
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

// Leaving lists the work queues that a change from prior to next detaches, and that have to stay bound for what
// waits. One that was declared is deleted instead; one that cannot be marked is unbound at once, and the worker sends it
// what comes back by its name. IsBound says which bindings there are: one that is missing went with its queue.
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

// StrongestPolicy finds the policy of a pipeline, or of one of its attachments, among those that match a queue, the
// strongest first.
func StrongestPolicy(n Names, matching []topology.NamedPolicy) (strongest topology.NamedPolicy, found bool) {
	i := slices.IndexFunc(matching, func(p topology.NamedPolicy) bool { return n.namesPolicy(p.Name) })
	if i < 0 {
		return strongest, false
	}
	return matching[i], true
}

// PriorityOf is the priority of the policy that attaches a work queue.
func (p Pipeline) PriorityOf(workQueue string) int {
	return p.PolicyPriority + p.WorkQueues[workQueue].precedence()
}
