package entity

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// resolve computes what the plan left unknown, and checks the outcome. Within apply all inputs are known.
func (e *entity[M, S]) resolve(ctx context.Context, plan, priorModel *M) (next S, prior *S, diags diag.Diagnostics) {
	known, diags := e.kind.Compute(ctx, plan, priorModel)
	if !known {
		diags.Append(unknownInput())
	}
	if diags.HasError() {
		return next, nil, diags
	}
	next, prior, more := e.specifications(ctx, *plan, priorModel)
	diags.Append(more...)
	if !diags.HasError() {
		diags.Append(report.Errors(e.kind.Check(next))...)
	}
	return next, prior, diags
}

// listForWrite reads the vhost just before it is changed and reports everything that stands in the way, so that
// nothing is begun that cannot be finished.
func (e *entity[M, S]) listForWrite(ctx context.Context, vhost string, next S, prior *S) (topology.Vhost, diag.Diagnostics) {
	e.session.MarkWritten()
	all, err := e.session.Fresh(ctx, vhost)
	switch {
	case broker.IsNotFound(err):
		return all, diag.Diagnostics{vhostNotThere(vhost)}
	case err != nil:
		return all, diag.Diagnostics{cannotListForWrite(vhost, err)}
	}
	return all, report.Applied(e.kind.CheckLive(next, prior, all), e.kind.Places)
}

// notUndone reports what a failed change could not undo, apart from why it failed.
func (e *entity[M, S]) notUndone(err error) diag.Diagnostics {
	var left *apply.NotUndoneError
	if !errors.As(err, &left) {
		return nil
	}
	return diag.Diagnostics{e.rollbackIncomplete(left)}
}
