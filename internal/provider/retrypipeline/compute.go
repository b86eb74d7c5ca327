package retrypipeline

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// inputs are the attributes that the objects depend on.
var inputs = sync.OnceValue(func() attribute.Inputs {
	return attribute.InputsOf(pipelineSchema(context.Background()), "force_destroy")
})

// Compute sets the computed attributes of a plan. It reports whether all inputs are known.
func (m *model) Compute(ctx context.Context, prior *model) (known bool, diags diag.Diagnostics) {
	replacement := checkReplacement(ctx, m, prior)
	if len(inputs().Unknown(ctx, *m)) > 0 {
		m.computePartly(ctx)
		replacement.Append(m.unknownWorkQueues(prior)...)
		return false, append(replacement, m.unknownTakeOvers(ctx)...)
	}
	m.RetiredQueues, m.DetachedQueues = types.MapNull(retiredType), types.MapNull(detachedType)
	p, diags := m.Specification(ctx)
	diags.Append(replacement...)
	if diags.HasError() {
		return true, diags
	}
	var detached map[string]bool
	if prior != nil && slices.Equal(m.Identity(), prior.Identity()) {
		before, more := prior.Specification(ctx)
		diags.Append(more...)
		waits, more := m.waitsForRetired(ctx, p, before)
		diags.Append(more...)
		if !waits {
			p.Retired = retiredAfter(p, prior)
		}
		detached = detachedAfter(p, before, m, prior)
	}
	p.Detached = slices.Sorted(maps.Keys(detached))
	m.show(p, p.Expand(), nil, detached)
	return true, diags
}

// show sets the computed attributes from a pipeline and its objects. Retired and detached say which queues were seen drained.
func (m *model) show(p pipeline.Pipeline, objects topology.Topology, retired, detached map[string]bool) {
	m.ID = entity.ID(m.Identity())
	m.Topology = attribute.TopologyValue(objects)
	m.RetiredQueues = retiredValue(p, retired)
	m.DetachedQueues = attribute.MapValue(detachedType, detached, func(drained bool) attr.Value {
		return types.ObjectValueMust(detachedType.AttrTypes, map[string]attr.Value{"drained": types.BoolValue(drained)})
	})
	m.Show(p)
}

// computePartly sets the computed attributes of a model with unknown inputs that depend only on known ones. The framework has
// made all others unknown, since such a plan differs from the state.
func (m *model) computePartly(ctx context.Context) {
	m.ID = entity.ID(m.Identity())
	if !attribute.Known(m.Name) || !attribute.Known(m.Engine) {
		return
	}
	named := pipeline.Pipeline{Name: m.Name.ValueString(), Engine: m.Engine.ValueString()}
	m.ShowNames(named)
	m.Topology = attribute.ExchangesValue(pipeline.ExpandExchanges(named))
	if attribute.FullyKnown(ctx, m.Delays) && attribute.Known(m.MaxAttempts) && !m.MaxAge.IsUnknown() {
		m.computeGivesUpAfter(ctx)
	}
}

// computeGivesUpAfter depends only on the schedule.
func (m *model) computeGivesUpAfter(ctx context.Context) {
	schedule := *m
	schedule.RetryOn, schedule.WorkQueues = types.SetNull(types.StringType), types.MapNull(attribute.WorkQueueType)
	schedule.PolicyDefinition = jsontypes.NewNormalizedNull()
	if p, diags := schedule.Specification(ctx); !diags.HasError() {
		m.GivesUpAfter = types.StringValue(pipeline.FormatDelay(p.GivesUpAfter()))
	}
}
