package entity

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// takeOver sets taken to the provider's data, which is nil until the provider is configured.
func takeOver(taken **configured.Provider, providerData any) diag.Diagnostics {
	if providerData == nil {
		return nil
	}
	made, ok := providerData.(*configured.Provider)
	if !ok {
		return diag.Diagnostics{unexpectedProviderData(providerData)}
	}
	*taken = made
	return nil
}

// beginWrite is an error if apply cannot reach the broker. Otherwise, earlier listings count as stale.
func (e *entity[M]) beginWrite(ctx context.Context, deletes bool) diag.Diagnostics {
	if !e.provider.Configured() {
		return diag.Diagnostics{notConnected()}
	}
	diags := unreached(e.provider.ReachForWrite(ctx))
	if !diags.HasError() {
		e.provider.MarkWritten(e.Name, deletes)
	}
	return diags
}

// reach is an error if the broker does not answer, or refuses the user.
func reach(ctx context.Context, s *configured.Provider) diag.Diagnostics {
	diags := unreached(s.Reach(ctx))
	if !diags.HasError() {
		diags.Append(unfamiliar(ctx, s)...)
	}
	return diags
}

// unfamiliar warns, once per operation, that the broker does not call itself RabbitMQ.
func unfamiliar(ctx context.Context, s *configured.Provider) diag.Diagnostics {
	name, err := s.Client.Product(ctx)
	if err != nil || name == product.RabbitMQ || s.Told("unfamiliar") {
		return nil // Reach reports errors
	}
	return diag.Diagnostics{unfamiliarBroker(name)}
}

// ReachForPlan returns the user, nil if the plan cannot be compared with the broker. If the broker does not answer, it warns
// instead of failing, so that a plan is possible without a broker.
func ReachForPlan(ctx context.Context, run *configured.Provider) (*broker.User, diag.Diagnostics) {
	user, err := run.Reach(ctx)
	switch {
	case err == nil:
		return &user, unfamiliar(ctx, run)
	case !broker.IsUnreached(err):
		return nil, reach(ctx, run)
	case run.Told("unreached"):
		return nil, nil
	}
	return nil, diag.Diagnostics{planNotCompared(err)}
}

// Fresh reads a vhost for a change.
func Fresh(ctx context.Context, run *configured.Provider, vhost string) (topology.Vhost, diag.Diagnostics) {
	all, err := run.Fresh(ctx, vhost)
	switch {
	case broker.IsNotFound(err):
		return all, diag.Diagnostics{vhostNotThere(ctx, run, vhost, refersToVhost)}
	case err != nil:
		return all, diag.Diagnostics{CannotList(vhost, SoNothingChanged, err)}
	}
	return all, nil
}

// ReadFailed is the error of a vhost that cannot be read, nil if the vhost is gone. A user without permissions gets the same
// answer for both, and a wrong conclusion would plan to create everything again.
func ReadFailed(ctx context.Context, run *configured.Provider, vhost string, err error) diag.Diagnostics {
	switch {
	case !broker.IsNotFound(err):
		return diag.Diagnostics{CannotList(vhost, "", err)}
	case VhostGone(ctx, run, vhost):
		return nil
	}
	return diag.Diagnostics{vhostNotAccessible(ctx, run, vhost)}
}

// VhostGone reports whether a vhost certainly does not exist.
func VhostGone(ctx context.Context, run *configured.Provider, vhost string) bool {
	gone, err := configured.Once(ctx, run, "gone "+vhost, func(ctx context.Context) (bool, error) { return run.Client.VhostGone(ctx, vhost) })
	return gone && err == nil
}
