package owner

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// warnOfLost warns of losses by a change; next is nil for a destroy. It names detached queues whose rejected messages are
// lost from then on, and failed queues that stay without an owner.
func (o owned[M, S, P]) warnOfLost(change apply.Change, prior S, next *S) diag.Diagnostics {
	var diags diag.Diagnostics
	dropped := droppedDeadLetters(o.run, change, prior.DetachedQueues(next, change.All.Topology))
	switch warning := report.DeadLettersDropped(dropped); {
	case len(dropped) == 0:
	case next == nil: // a destroy has no configuration to point to
		diags.Append(warning)
	default:
		diags.Append(diag.WithPath(o.WorkQueues, warning))
	}
	return append(diags, report.FailedQueuesStay(prior.StayingFailedQueues(next, change.All.Topology))...)
}

// droppedDeadLetters lists the queues whose rejected messages are lost after a change that detaches them. It ignores other
// owners' policies that leave the queue in this run.
func droppedDeadLetters(run *configured.Provider, c apply.Change, queues []string) []string {
	var dropped []string
	for _, queue := range queues {
		going := run.Goes(configured.Policy, c.Vhost, queue, slices.Collect(maps.Keys(c.Live.Policies))...)
		vhost := c.All
		vhost.Policies = maps.Clone(vhost.Policies)
		maps.DeleteFunc(vhost.Policies, func(name string, _ topology.Policy) bool {
			_, own := c.Live.Policies[name]
			return !own && slices.Contains(going, name)
		})
		dropped = append(dropped, topology.DroppedDeadLetters([]string{queue}, c.Live, c.Wanted, vhost)...)
	}
	return dropped
}
