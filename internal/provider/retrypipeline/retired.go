package retrypipeline

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// waitsForRetired reports whether the apply itself waits until queues that leave the schedule are drained, and then removes
// them. The apply does not wait if a pipeline with a worker keeps no delay. Workers get the new schedule only after the
// apply, and would find no bound queue for their old delays until then.
func (m *model) waitsForRetired(ctx context.Context, p, before pipeline.Pipeline) (bool, diag.Diagnostics) {
	timeout, diags := m.Timeouts.Update(ctx, 0)
	if timeout == 0 || diags.HasError() {
		return false, diags
	}
	stays := func(wait time.Duration) bool { return slices.Contains(p.Waits(), wait) }
	if old := before.Waits(); p.HasWorker() && len(old) > 0 && !slices.ContainsFunc(old, stays) {
		diags.Append(scheduleReplaced())
		return false, diags
	}
	return true, diags
}

// retiredAfter lists the delays whose queues must stay although they are not in the schedule. Queues that were empty at the
// last refresh need not stay.
func retiredAfter(p pipeline.Pipeline, prior *model) []time.Duration {
	var retired []time.Duration
	queues, _ := prior.Topology.Attributes()["queues"].(types.Map)
	drained, scheduled := attribute.Drained(prior.RetiredQueues), p.Expand().Queues
	for queue := range queues.Elements() {
		delay, isRetry := p.Names().DelayOf(queue)
		_, stays := scheduled[queue]
		if isRetry && !stays && !drained[queue] {
			retired = append(retired, delay)
		}
	}
	return retired
}

// Refresh sets the computed attributes from the owned objects. Retry queues that are not in the schedule are retired.
func (m *model) Refresh(ctx context.Context, run *configured.Provider, p pipeline.Pipeline, owned topology.Topology) diag.Diagnostics {
	p.Retired = nil
	scheduled := p.Expand().Queues
	var retired []string
	for _, queue := range slices.Sorted(maps.Keys(owned.Queues)) {
		delay, isRetry := p.Names().DelayOf(queue)
		if _, stays := scheduled[queue]; !isRetry || stays {
			continue
		}
		p.Retired, retired = append(p.Retired, delay), append(retired, queue)
	}
	p.Detached = pipeline.Detached(p.Names(), owned)
	empty, err := run.Drained(ctx, p.Vhost, retired...)
	if err != nil {
		return diag.Diagnostics{owner.CannotReadQueues(err)}
	}
	detached, err := m.detachedDrained(ctx, run, p, owned)
	if err != nil {
		return diag.Diagnostics{owner.CannotReadQueues(err)}
	}
	m.show(p, owned, empty, detached)
	return nil
}

// detachedDrained finds out for which detached queues no message waits. Counts do not tell which queue a message belongs to,
// so all of the pipeline must be empty. What was drained stays drained, since no message for the queue enters the pipeline.
func (m *model) detachedDrained(
	ctx context.Context, run *configured.Provider, p pipeline.Pipeline, owned topology.Topology,
) (map[string]bool, error) {
	before, empty := attribute.Drained(m.DetachedQueues), false
	if slices.ContainsFunc(p.Detached, func(queue string) bool { return !before[queue] }) {
		n := p.Names()
		waiting := slices.DeleteFunc(slices.Collect(maps.Keys(owned.Queues)), func(queue string) bool {
			return !n.OwnsQueue(queue) || queue == n.FailedQueue() || queue == n.RefusedQueue() // no message comes back from there
		})
		var err error
		if empty, err = run.AllDrained(ctx, p.Vhost, waiting...); err != nil {
			return nil, err
		}
	}
	detached := map[string]bool{}
	for _, queue := range p.Detached {
		detached[queue] = before[queue] || empty
	}
	return detached, nil
}

// detachedAfter lists queues that must stay bound although they are no work queues, and whether they were drained. They leave
// with this change or left before. A drained queue stays until another input changes: its binding does no harm and does not
// justify an apply. A binding that was deleted is not restored, since it went with its queue.
func detachedAfter(p, before pipeline.Pipeline, plan, prior *model) map[string]bool {
	detached := map[string]bool{}
	for queue, drained := range attribute.Drained(prior.DetachedQueues) {
		if _, returns := p.WorkQueues[queue]; !returns && (!drained || len(inputs().Different(*plan, *prior)) == 0) {
			detached[queue] = drained
		}
	}
	bindings, _ := prior.Topology.Attributes()["bindings"].(attribute.Bindings)
	bound := bindings.Texts()
	for _, queue := range pipeline.Leaving(before, p, func(b topology.Binding) bool { return bound[types.StringValue(b.String())] }) {
		detached[queue] = false
	}
	return detached
}
