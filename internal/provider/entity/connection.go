package entity

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
)

// takeOver sets the session to the provider's data, which is nil as long as the provider is not configured.
func takeOver(taken **session.Session, providerData any) diag.Diagnostics {
	if providerData == nil {
		return nil
	}
	made, ok := providerData.(*session.Session)
	if !ok {
		return diag.Diagnostics{unexpectedProviderData(providerData)}
	}
	*taken = made
	return nil
}

// requireConnection is an error if the broker cannot be asked at apply.
func (e *entity[M, S]) requireConnection(ctx context.Context) diag.Diagnostics {
	if !e.session.Configured() {
		return diag.Diagnostics{notConnected()}
	}
	return unreached(e.session.ReachForWrite(ctx))
}

// reach is an error if the broker does not answer, or not to this user.
func reach(ctx context.Context, s *session.Session) diag.Diagnostics {
	diags := unreached(s.Reach(ctx))
	if !diags.HasError() {
		diags.Append(unfamiliar(ctx, s)...)
	}
	return diags
}

// unfamiliar is a warning, once in an operation, if the broker has another name than RabbitMQ.
func unfamiliar(ctx context.Context, s *session.Session) diag.Diagnostics {
	name, err := s.Client.Product(ctx)
	if err != nil || name == product.RabbitMQ || s.Told("unfamiliar") {
		return nil // an error is Reach's
	}
	return diag.Diagnostics{unfamiliarBroker(name)}
}

func unreached(_ broker.User, err error) diag.Diagnostics {
	switch {
	case err == nil:
		return nil
	case broker.IsUnauthorized(err):
		return diag.Diagnostics{userRefused(err)}
	case product.IsOtherError(err):
		return diag.Diagnostics{notRabbitMQ(err)}
	case broker.IsProxys(err):
		return diag.Diagnostics{proxyInTheWay(err)}
	default:
		return diag.Diagnostics{notReached(err)}
	}
}

// reachForPlan is reach for a plan: a broker that does not answer ends in a warning, so that a plan can be made without
// one. Without a user, nothing can be compared with the broker.
func (e *entity[M, S]) reachForPlan(ctx context.Context) (*broker.User, diag.Diagnostics) {
	user, err := e.session.Reach(ctx)
	switch {
	case err == nil:
		return &user, unfamiliar(ctx, e.session)
	case !broker.IsUnreached(err):
		return nil, reach(ctx, e.session)
	case e.session.Told("unreached"):
		return nil, nil
	}
	return nil, diag.Diagnostics{planNotCompared(err)}
}
