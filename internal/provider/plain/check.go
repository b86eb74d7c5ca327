package plain

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckPlan compares a plan with its vhost. It does nothing within an apply that has begun to write, because its listing would be
// older than the writes.
func CheckPlan(
	ctx context.Context, run *configured.Provider, vhost string, find func(topology.Vhost) preflight.Findings,
) diag.Diagnostics {
	if !run.Configured() || run.HasWritten() {
		return nil
	}
	user, diags := entity.ReachForPlan(ctx, run)
	if user == nil {
		return diags
	}
	all, err := run.Listed(ctx, vhost)
	run.Found(vhost, all, err)
	switch {
	case broker.IsNotFound(err):
		return diags // something in the same apply can create it, and each of its objects would say so
	case err != nil:
		return append(diags, entity.CannotList(vhost, " to check the plan", err))
	}
	return append(diags, report.Planned(find(all), false)...)
}

// CheckApply compares a change with its vhost as it is now.
func CheckApply(
	ctx context.Context, run *configured.Provider, vhost string, find func(topology.Vhost) preflight.Findings,
) (topology.Vhost, diag.Diagnostics) {
	all, diags := entity.Fresh(ctx, run, vhost)
	if diags.HasError() {
		return all, diags
	}
	return all, report.Applied(find(all))
}
