package entity

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
)

// entity is a resource of a kind.
type entity[M, S any] struct {
	kind    Kind[M, S]
	session *session.Session
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
	return entity[M, S]{kind: kind, session: session.Unconnected()}
}

// Metadata names the resource.
func (e *entity[M, S]) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + e.kind.Type
}

// Schema describes the resource.
func (e *entity[M, S]) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = e.kind.Schema(ctx)
}

// Configure takes over the session that the provider's Configure made.
func (e *entity[M, S]) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	resp.Diagnostics.Append(takeOver(&e.session, req.ProviderData)...)
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
func (e *entity[M, S]) key(m M) session.Key {
	values := e.kind.Identity(m)
	return session.Key{Kind: e.kind.Kind, Vhost: values[0].ValueString(), Name: values[len(values)-1].ValueString()}
}

// wholeKey is the key with all parts of the identity in its name: two pipelines may have attachments of one queue for a
// while.
func (e *entity[M, S]) wholeKey(m M) session.Key {
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
