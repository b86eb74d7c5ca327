package retrypipeline

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

type retiredModel struct {
	Delay   types.String `tfsdk:"delay"`
	Drained types.Bool   `tfsdk:"drained"`
}

func (m model) retired(ctx context.Context) (map[string]retiredModel, diag.Diagnostics) {
	if m.RetiredQueues.IsNull() || m.RetiredQueues.IsUnknown() {
		return nil, nil
	}
	var retired map[string]retiredModel
	diags := m.RetiredQueues.ElementsAs(ctx, &retired, false)
	return retired, diags
}

// waitsForRetired reports whether the apply itself waits for queues that leave the schedule, and then
// removes them. It does not if none of the delays stays: workers get the new schedule only after the apply,
// and would find none of theirs bound. Without a worker there is nobody who could.
func (m *model) waitsForRetired(ctx context.Context, p pipeline.Pipeline, prior *model) (bool, diag.Diagnostics) {
	if m.Timeouts.IsNull() || m.Timeouts.IsUnknown() || !prior.isOf(p) {
		return false, nil
	}
	timeout, diags := m.Timeouts.Update(ctx, 0)
	if timeout == 0 || diags.HasError() {
		return false, diags
	}
	before, diags := prior.pipeline(ctx)
	stays := func(wait time.Duration) bool { return slices.Contains(p.Waits(), wait) }
	if old := before.Waits(); p.HasWorker() && len(old) > 0 && !slices.ContainsFunc(old, stays) {
		diags.Append(scheduleReplaced())
		return false, diags
	}
	return true, diags
}

// isOf reports whether there is a model, and it is one of the same pipeline.
func (m *model) isOf(p pipeline.Pipeline) bool {
	return m != nil && m.Name == types.StringValue(p.Name) && m.Vhost == types.StringValue(p.Vhost)
}

// retiredAfter lists the delays whose queues have to stay although they are not in the schedule: all that the
// refreshed state has, less those that were seen to be empty when it was read.
func retiredAfter(ctx context.Context, p pipeline.Pipeline, prior *model) ([]time.Duration, diag.Diagnostics) {
	if !prior.isOf(p) {
		return nil, nil
	}
	listed, diags := prior.retired(ctx)
	var retired []time.Duration
	queues, isMap := prior.Topology.Attributes()["queues"].(types.Map)
	if !isMap {
		return nil, diags
	}
	scheduled := pipeline.Expand(p).Queues
	for queue := range queues.Elements() {
		delay, isRetry := p.Names().DelayOf(queue)
		_, stays := scheduled[queue]
		if isRetry && !stays && !listed[queue].Drained.ValueBool() {
			retired = append(retired, delay)
		}
	}
	return retired, diags
}

// refresh sets the computed attributes from what is owned on the broker. Retry queues that are not in the
// schedule are retired; the broker is asked of each whether it is empty.
func refresh(ctx context.Context, applier *apply.Applier, state *model, p pipeline.Pipeline, owned topology.Topology) diag.Diagnostics {
	var diags diag.Diagnostics
	p.Retired = nil
	scheduled := pipeline.Expand(p).Queues
	seen := drained{retired: map[string]bool{}}
	for _, queue := range slices.Sorted(maps.Keys(owned.Queues)) {
		delay, isRetry := p.Names().DelayOf(queue)
		if _, stays := scheduled[queue]; !isRetry || stays {
			continue
		}
		p.Retired = append(p.Retired, delay)
		empty, err := applier.LooksEmpty(ctx, p.Vhost, queue)
		if err != nil {
			diags.Append(cannotReadQueue(queue, err))
		}
		seen.retired[queue] = empty
	}
	var more diag.Diagnostics
	p.Detached = pipeline.Detached(p.Names(), owned)
	seen.detached, more = detachedDrained(ctx, applier, p, owned)
	diags.Append(more...)
	state.show(p, owned, seen)
	return diags
}
