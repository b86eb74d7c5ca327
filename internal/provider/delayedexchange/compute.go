package delayedexchange

import (
	"context"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// inputs are the attributes that the objects depend on.
var inputs = sync.OnceValue(func() attribute.Inputs {
	return attribute.InputsOf(exchangeSchema(context.Background()), "force_destroy")
})

// Compute sets the computed attributes of a plan. It reports whether all inputs are known.
func (m *model) Compute(ctx context.Context, prior *model) (known bool, diags diag.Diagnostics) {
	if len(inputs().Unknown(ctx, *m)) > 0 {
		if attribute.Known(m.Name) { // the framework has made the other computed attributes unknown
			m.showNames()
		}
		return false, nil
	}
	m.RetiredLevels = types.MapNull(retiredType)
	e, diags := m.Specification(ctx)
	if diags.HasError() {
		return true, diags
	}
	diags.Append(report.Errors(preflight.CheckDelayedExchange(e))...)
	if diags.HasError() { // it can have too many levels to expand
		return true, diags
	}
	var drained map[string]bool
	if prior != nil && slices.Equal(m.Identity(), prior.Identity()) {
		drained = attribute.Drained(prior.RetiredLevels)
		waits, more := m.waitsForRetired(ctx, e, prior)
		diags.Append(more...)
		if !waits {
			e.Retired = retiredAfter(e, prior, drained)
		}
	}
	m.show(e, e.Expand(), drained)
	return true, diags
}

// show sets the computed attributes from a delayed exchange, its objects, and the retired levels that were seen drained.
func (m *model) show(e delayed.Exchange, objects topology.Topology, drained map[string]bool) {
	m.Topology = attribute.TopologyValue(objects)
	m.Worker = attribute.DelayedWorkerValue(e.Worker())
	m.Levels, m.RetiredLevels = levelsValue(e), retiredValue(e, drained)
	m.showNames()
}

// showNames sets the computed attributes that depend only on the name and the vhost.
func (m *model) showNames() {
	n := delayed.Names(m.Name.ValueString())
	m.DeliverExchange = types.StringValue(n.DeliverExchange())
	m.InboxQueue, m.UnroutedQueue = types.StringValue(n.Inbox()), types.StringValue(n.UnroutedQueue())
	m.WorkerPermissions = attribute.PermissionsValue(delayed.WorkerPermissions(n))
	m.PublisherPermissions = attribute.PermissionsValue(delayed.PublisherPermissions(n))
	m.OperatorPermissions = attribute.MapValue(
		attribute.OperatorPermissionsType, delayed.OperatorPermissions(n), attribute.PermissionsValue)
	m.ID = entity.ID(m.Identity())
}
