package pipeline

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// recovered takes schedule, attempts and reasons from the definition on the broker, and the work queues from
// the return bindings. A delay that is bound to the retry exchange but not in the schedule is a retired one,
// which Owned finds.
func (workerEngine) recovered(name, vhostName string, vhost topology.Topology) (Pipeline, error) {
	p := Pipeline{Name: name, Vhost: vhostName, WorkQueues: map[string]WorkQueue{}}
	n := p.Names()
	definition, err := findDefinition(n, vhost)
	if err != nil {
		return p, err
	}
	p.MaxAttempts, p.RetryOn = definition.MaxAttempts, definition.RetryOn
	p.PolicyPriority = cmp.Or(definition.PolicyPriority, DefaultPolicyPriority)
	p.PolicyDefinition = definition.PolicyDefinition
	for i, spelling := range definition.Delays {
		wait, err := ParseDelay(spelling)
		if err != nil {
			return p, fmt.Errorf("delay %d of the argument %s: %w", i, DefinitionArgument, err)
		}
		p.Delays = append(p.Delays, Delay{Wait: wait, Spelling: spelling})
	}
	if p.MaxAge, err = recoverMaxAge(definition); err != nil {
		return p, err
	}
	p.QueueType = vhost.Queues[n.Inbox()].Type
	for _, binding := range vhost.Bindings {
		if binding.Equal(n.ReturnBinding(binding.Destination)) {
			workQueue := recoverWorkQueue(p, binding.Destination, vhost)
			workQueue.MaxAttempts = definition.QueueMaxAttempts[binding.Destination]
			p.WorkQueues[binding.Destination] = workQueue
		}
	}
	return p, nil
}

func recoverMaxAge(definition Definition) (Delay, error) {
	if definition.MaxAge == "" {
		return Delay{}, nil
	}
	age, err := ParseMaxAge(definition.MaxAge)
	if err != nil {
		return Delay{}, fmt.Errorf("max_age of the argument %s: %w", DefinitionArgument, err)
	}
	return Delay{Wait: age, Spelling: definition.MaxAge}, nil
}

func definitions(n Names, vhost topology.Topology) []string {
	var found []string
	for _, binding := range vhost.Bindings {
		text, isText := binding.Arguments[DefinitionArgument].(string)
		if isText && binding.Source == n.DeadLetterExchange() && binding.Destination == n.Inbox() {
			found = append(found, text)
		}
	}
	return found
}

func findDefinition(n Names, vhost topology.Topology) (Definition, error) {
	switch found := definitions(n, vhost); len(found) {
	case 0:
		return Definition{}, fmt.Errorf("no binding from %q to %q has the argument %s: "+
			"there is no pipeline of this name, or its definition is gone",
			n.DeadLetterExchange(), n.Inbox(), DefinitionArgument)
	case 1:
		return ParseDefinition(found[0])
	default:
		return Definition{}, fmt.Errorf("several bindings from %q to %q have the argument %s, since a change was interrupted: "+
			"remove all but the one that is right:\n%s", n.DeadLetterExchange(), n.Inbox(), DefinitionArgument, strings.Join(found, "\n"))
	}
}
