package owner

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Read fills the computed attributes from the broker. Inputs keep their configured values. After an import, they are
// recovered from the broker.
func (o owned[M, S, P]) Read(ctx context.Context, state *M) (exists bool, diags diag.Diagnostics) {
	vhost := o.vhost(*state)
	all, err := o.listForRead(ctx, vhost, *state)
	if err != nil {
		return false, entity.ReadFailed(ctx, o.run, vhost, err)
	}
	imported := P(state).Imported()
	exists, diags = o.fill(ctx, state, all.Topology)
	if !imported || !exists {
		return exists, diags
	}
	if spec, failed := P(state).Specification(ctx); !failed.HasError() {
		diags.Append(entity.Unstarted(ctx, o.run, vhost, slices.Collect(maps.Keys(spec.Owned(all.Topology).Queues))...)...)
	}
	return exists, diags
}

// fill fills a state from a vhost.
func (o owned[M, S, P]) fill(ctx context.Context, state *M, vhost topology.Topology) (exists bool, diags diag.Diagnostics) {
	if P(state).Imported() {
		if err := P(state).Recover(vhost); err != nil {
			return false, diag.Diagnostics{o.Cannot("import", fmt.Sprintf("%s: %s. %s", o.Describe((*state).Identity()), err, o.IDForm()))}
		}
	}
	return o.refresh(ctx, state, vhost)
}

// List finds the vhost's resources.
func (o owned[M, S, P]) List(
	ctx context.Context, vhost string,
) (found [][]string, fill func(*M) diag.Diagnostics, diags diag.Diagnostics) {
	all, err := o.run.Fresh(ctx, vhost)
	if err != nil {
		return nil, nil, diag.Diagnostics{entity.CannotList(vhost, "", err)}
	}
	return o.Found(all.Topology), func(m *M) diag.Diagnostics {
		_, diags := o.fill(ctx, m, all.Topology)
		return diags
	}, nil
}

// listForRead is the vhost as this operation has listed it. For an import it lists the vhost again.
func (o owned[M, S, P]) listForRead(ctx context.Context, vhost string, state M) (topology.Vhost, error) {
	if P(&state).Imported() {
		return o.run.Fresh(ctx, vhost)
	}
	return o.run.Near(ctx, vhost, o.center(state))
}

// center is what matters to the models.
func (o owned[M, S, P]) center(models ...M) (all nearby.Center) {
	for _, m := range models {
		all = all.And(P(&m).Center())
	}
	return all
}

// refresh sets the computed attributes from the vhost. It returns false if the vhost has none of the resource's objects.
func (o owned[M, S, P]) refresh(ctx context.Context, state *M, vhost topology.Topology) (exists bool, diags diag.Diagnostics) {
	spec, diags := P(state).Specification(ctx)
	if diags.HasError() {
		return false, diags
	}
	owned := spec.Owned(vhost)
	if owned.Empty() {
		return false, diags
	}
	diags.Append(P(state).Refresh(ctx, o.run, spec, owned)...)
	return true, diags
}
