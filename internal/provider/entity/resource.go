package entity

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
)

// entity is a resource of a kind.
type entity[M, S any] struct {
	kind     Kind[M, S]
	provider *configured.Provider
}

var (
	_ resource.ResourceWithConfigure      = (*entity[int, int])(nil)
	_ resource.ResourceWithIdentity       = (*entity[int, int])(nil)
	_ resource.ResourceWithImportState    = (*entity[int, int])(nil)
	_ resource.ResourceWithModifyPlan     = (*entity[int, int])(nil)
	_ resource.ResourceWithValidateConfig = (*entity[int, int])(nil)
)

// New makes a resource of a kind. Until it is configured, it has no connection.
func New[M, S any](kind Kind[M, S]) resource.Resource {
	made := newEntity(kind)
	return &made
}

func newEntity[M, S any](kind Kind[M, S]) entity[M, S] {
	return entity[M, S]{kind: kind, provider: configured.Unconnected()}
}

// Metadata names the resource.
func (e *entity[M, S]) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + e.kind.Type
}

// Schema describes the resource.
func (e *entity[M, S]) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = e.kind.Schema(ctx)
}

// Configure takes over what the provider's Configure made.
func (e *entity[M, S]) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	resp.Diagnostics.Append(takeOver(&e.provider, req.ProviderData)...)
}

// ValidateConfig checks each attribute by itself.
func (e *entity[M, S]) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config M
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(e.kind.Validate(ctx, config)...)
}

// key is what the run knows the resource as. The identity is known.
func (e *entity[M, S]) key(m M) configured.Key {
	values := e.kind.Identity(m)
	return configured.Key{Kind: e.kind.Kind, Vhost: values[0].ValueString(), Name: values[len(values)-1].ValueString()}
}

// wholeKey is the key with all parts of the identity in its name: two pipelines may have attachments of one queue for a
// while.
func (e *entity[M, S]) wholeKey(m M) configured.Key {
	key, parts := e.key(m), []string(nil)
	for _, value := range e.kind.Identity(m)[1:] {
		parts = append(parts, value.ValueString())
	}
	key.Name = strings.Join(parts, "/")
	return key
}

// specifications reads a model and, if there is one, the one before it.
func (e *entity[M, S]) specifications(ctx context.Context, next M, prior *M) (S, *S, diag.Diagnostics) {
	spec, diags := e.kind.Specification(ctx, next)
	if prior == nil {
		return spec, nil, diags
	}
	before, more := e.kind.Specification(ctx, *prior)
	diags.Append(more...)
	return spec, &before, diags
}

// takeOver sets the provider to the provider's data, which is nil as long as the provider is not configured.
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

// requireConnection is an error if the broker cannot be asked at apply.
func (e *entity[M, S]) requireConnection(ctx context.Context) diag.Diagnostics {
	if !e.provider.Configured() {
		return diag.Diagnostics{notConnected()}
	}
	return unreached(e.provider.ReachForWrite(ctx))
}

// reach is an error if the broker does not answer, or not to this user.
func reach(ctx context.Context, s *configured.Provider) diag.Diagnostics {
	diags := unreached(s.Reach(ctx))
	if !diags.HasError() {
		diags.Append(unfamiliar(ctx, s)...)
	}
	return diags
}

// unfamiliar is a warning, once in an operation, if the broker has another name than RabbitMQ.
func unfamiliar(ctx context.Context, s *configured.Provider) diag.Diagnostics {
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
	user, err := e.provider.Reach(ctx)
	switch {
	case err == nil:
		return &user, unfamiliar(ctx, e.provider)
	case !broker.IsUnreached(err):
		return nil, reach(ctx, e.provider)
	case e.provider.Told("unreached"):
		return nil, nil
	}
	return nil, diag.Diagnostics{planNotCompared(err)}
}
