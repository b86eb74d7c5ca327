package retrypipeline

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// detachedAfter lists the queues that have to stay bound although they are no work queues, and says which of them were
// seen to be drained. Those are the queues that leave with this change, and those that left before. One that is drained
// stays until something else changes, too: its binding does no harm, and is not worth an apply. A binding that is gone is
// not restored: it went with its queue.
func detachedAfter(ctx context.Context, p pipeline.Pipeline, plan, prior *model) (map[string]bool, diag.Diagnostics) {
	if !prior.isOf(p) {
		return nil, nil
	}
	before, diags := prior.pipeline(ctx)
	if diags.HasError() {
		return nil, diags
	}
	detached := map[string]bool{}
	for queue, drained := range attribute.Drained(prior.DetachedQueues) {
		if _, returns := p.WorkQueues[queue]; !returns && (!drained || !plan.changes(prior)) {
			detached[queue] = drained
		}
	}
	bindings, _ := prior.Topology.Attributes()["bindings"].(attribute.Bindings)
	bound := bindings.Texts()
	for _, queue := range pipeline.Leaving(before, p, func(b topology.Binding) bool { return bound[types.StringValue(b.String())] }) {
		detached[queue] = false
	}
	return detached, diags
}

// changes reports whether an input that the topology depends on differs.
func (m *model) changes(prior *model) bool {
	return !m.Delays.Equal(prior.Delays) || !m.MaxAttempts.Equal(prior.MaxAttempts) || !m.MaxAge.Equal(prior.MaxAge) ||
		!m.RetryOn.Equal(prior.RetryOn) || !m.WorkQueues.Equal(prior.WorkQueues) ||
		!m.PolicyPriority.Equal(prior.PolicyPriority) || !m.PolicyDefinition.Equal(prior.PolicyDefinition)
}
