package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

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
	marked := topology.Arguments{TakeOverArgument: w.TakeOverFrom}
	maps.Copy(marked, b.Arguments)
	b.Arguments = marked
	return b
}

// takenOverFrom reads the mark of a return binding, and returns the binding without.
func takenOverFrom(b topology.Binding) (pipeline string, plain topology.Binding) {
	pipeline, marked := b.Arguments[TakeOverArgument].(string)
	if !marked {
		return "", b
	}
	rest := maps.Clone(b.Arguments)
	delete(rest, TakeOverArgument)
	if len(rest) == 0 {
		rest = nil
	}
	b.Arguments = rest
	return pipeline, b
}

// detachedBinding brings messages back to a queue that is no work queue any more.
func (n Names) detachedBinding(queue string) topology.Binding {
	b := n.ReturnBinding(queue)
	b.Arguments = topology.Arguments{DetachedArgument: string(n)}
	return b
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
