package delayedexchange

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// compute sets the computed attributes of a plan. It reports whether all inputs are known.
func compute(ctx context.Context, plan, prior *model) (known bool, diags diag.Diagnostics) {
	if !plan.inputsKnown(ctx) {
		plan.computePartly()
		return false, nil
	}
	plan.RetiredLevels = types.MapNull(retiredType)
	e, diags := specification(ctx, *plan)
	if diags.HasError() {
		return true, diags
	}
	diags.Append(report.Errors(preflight.CheckDelayedExchange(e))...)
	if diags.HasError() { // it may have too many levels to expand
		return true, diags
	}
	var drained map[string]bool
	waits, more := plan.waitsForRetired(ctx, e, prior)
	diags.Append(more...)
	if prior.isOf(e) {
		drained = attribute.Drained(prior.RetiredLevels)
	}
	if prior.isOf(e) && !waits {
		e.Retired = retiredAfter(e, prior, drained)
	}
	plan.show(e, delayed.Expand(e), drained)
	return true, diags
}

// show sets the computed attributes to a delayed exchange, to objects of it, and to what of its retired levels was seen to be
// empty.
func (m *model) show(e delayed.Exchange, objects topology.Topology, drained map[string]bool) {
	m.Topology = attribute.TopologyValue(objects)
	m.Worker = attribute.DelayedWorkerValue(e.Worker())
	m.Levels, m.RetiredLevels = levelsValue(e), retiredValue(e, drained)
	m.showNames()
}

// showNames sets the computed attributes that follow from the name and the vhost alone.
func (m *model) showNames() {
	n := delayed.Names(m.Name.ValueString())
	m.DeliverExchange = types.StringValue(n.DeliverExchange())
	m.InboxQueue, m.UnroutedQueue = types.StringValue(n.Inbox()), types.StringValue(n.UnroutedQueue())
	m.WorkerPermissions = attribute.PermissionsValue(delayed.WorkerPermissions(n))
	m.PublisherPermissions = attribute.PermissionsValue(delayed.PublisherPermissions(n))
	m.OperatorPermissions = attribute.OperatorPermissionsValue(delayed.OperatorPermissions(n))
	m.ID = entity.ID(m.identity())
}

func (m model) inputsKnown(ctx context.Context) bool {
	return attribute.Known(m.Name) && attribute.Known(m.Vhost) && attribute.Known(m.Type) && attribute.Known(m.MaxDelay) &&
		attribute.Known(m.Precision) && attribute.Known(m.PolicyPriority) &&
		(m.Timeouts.IsNull() || attribute.FullyKnown(ctx, m.Timeouts))
}

// computePartly sets the computed attributes of a model of which some input is known only later. Whatever
// depends on it is unknown, or apply would contradict the plan.
func (m *model) computePartly() {
	m.Topology, m.Worker = types.ObjectUnknown(attribute.TopologyType), types.ObjectUnknown(attribute.DelayedWorkerType)
	m.Levels, m.RetiredLevels = types.MapUnknown(levelType), types.MapUnknown(retiredType)
	if attribute.Known(m.Name) {
		m.showNames()
		return
	}
	m.ID, m.DeliverExchange = types.StringUnknown(), types.StringUnknown()
	m.InboxQueue, m.UnroutedQueue = types.StringUnknown(), types.StringUnknown()
	m.WorkerPermissions = types.ObjectUnknown(attribute.PermissionsType)
	m.PublisherPermissions = types.ObjectUnknown(attribute.PermissionsType)
	m.OperatorPermissions = types.MapUnknown(attribute.OperatorPermissionsType)
}

func change(prior, next *delayed.Exchange, vhost topology.Vhost) (c apply.Change) {
	e := prior
	switch {
	case prior == nil:
		e = next
		c = apply.Change{
			Live: delayed.Owned(*e, vhost.Topology), Wanted: delayed.Expand(*e), Identity: delayed.Identity(*e),
		}
	case next == nil:
		c = apply.Change{Live: delayed.Owned(*e, vhost.Topology)}
	default:
		e = next
		live := topology.Merge(delayed.Owned(*prior, vhost.Topology), delayed.Owned(*next, vhost.Topology))
		c = apply.Change{
			Live: live, Wanted: wantedBeside(live, *next),
			RestoresDeadLetterRoute: delayed.RestoresDeadLetterRoute(*prior, vhost.Topology),
		}
	}
	n := e.Names()
	c.Vhost, c.All, c.Guard, c.CatchAll, c.Entrance = e.Vhost, vhost, delayed.Guard(*e), n.UnroutedQueue(), n.Exchange()
	c.NoteOf, c.Noted, c.Together = n.NoteOf, n.Noted, true
	return c
}

// wantedBeside is what the delayed exchange expands to. The queue of a retired level is left as it is: it goes as soon as it is
// empty, and re-creating it would be refused while it is not.
func wantedBeside(live topology.Topology, e delayed.Exchange) topology.Topology {
	expanded := delayed.Expand(e)
	for _, l := range e.Retired {
		name := e.Names().Level(l)
		if queue, exists := live.Queues[name]; exists {
			expanded.Queues[name] = queue
		}
	}
	return expanded
}
