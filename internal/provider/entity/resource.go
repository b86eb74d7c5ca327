package entity

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
)

// entity is a resource of a kind.
type entity[M Model] struct {
	ResourceType
	provider *configured.Provider
	of       func(*configured.Provider) Resource[M]
}

var (
	_ resource.ResourceWithConfigure      = (*entity[Model])(nil)
	_ resource.ResourceWithIdentity       = (*entity[Model])(nil)
	_ resource.ResourceWithImportState    = (*entity[Model])(nil)
	_ resource.ResourceWithModifyPlan     = (*entity[Model])(nil)
	_ resource.ResourceWithValidateConfig = (*entity[Model])(nil)
)

// Definition defines a resource, with its list and its data source. None of them has a connection until Configure.
type Definition[M Model] struct {
	ResourceType ResourceType
	// Of makes the handler of each call from a configured provider.
	Of func(*configured.Provider) Resource[M]
}

// New makes the resource.
func (d Definition[M]) New() resource.Resource { return d.entity() }

func (d Definition[M]) entity() *entity[M] {
	return &entity[M]{d.ResourceType, configured.Unconnected(), d.Of}
}

func (e *entity[M]) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + e.Type
	resp.ResourceBehavior.MutableIdentity = e.MutableIdentity
}

func (e *entity[M]) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = e.ResourceType.Schema(ctx)
	if e.Common {
		resp.Schema.Version = commonVersion
	}
}

// Configure takes over the provider that the provider's Configure made.
func (e *entity[M]) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	resp.Diagnostics.Append(takeOver(&e.provider, req.ProviderData)...)
}

// ValidateConfig checks each attribute by itself.
func (e *entity[M]) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config M
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if has(resp.Diagnostics, "Invalid JSON String Value") {
		resp.Diagnostics.AddError("Not a JSON object", `Write JSON text, such as jsonencode({ "key" = "value" }).`)
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(e.of(e.provider).Validate(ctx, config)...)
	}
}

// ModifyPlan sets every computed attribute. Facts that it reads from the broker lead only to warnings and errors, and never
// change the plan.
func (e *entity[M]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer e.provider.Call()()
	of, connected := e.of(e.provider), e.provider.Configured()
	var plan, state M
	var prior *M
	if !req.State.Raw.IsNull() {
		if !connected && !e.provider.Told("unconfigured") {
			resp.Diagnostics.Append(planNotConfigured())
		}
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		prior = &state
	}
	if req.Plan.Raw.IsNull() {
		if connected && prior != nil && !resp.Diagnostics.HasError() {
			resp.Diagnostics.Append(of.PlanDestroy(ctx, state)...)
			resp.Diagnostics.Append(e.planDestroy(ctx, of, state)...)
		}
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	existed, diags := req.Private.GetKey(ctx, createdKey)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	identity := plan.Identity()
	// The creation of a replacement is planned a second time.
	if Known(identity) && (prior != nil || len(existed) == 0) {
		e.provider.Plans(e.key(identity))
		if prior == nil {
			resp.Diagnostics.Append(e.claim(identity, configured.Created)...)
		}
	}
	if prior != nil {
		for _, name := range e.Replacing().Different(plan, state) {
			resp.RequiresReplace.Append(path.Root(name))
		}
	}
	resp.Diagnostics.Append(of.Plan(ctx, &plan, prior)...)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// planDestroy notes that a resource is destroyed. Terraform can plan that before it refreshes the state, so an object that is gone
// already is no reason to refuse.
func (e *entity[M]) planDestroy(ctx context.Context, of Resource[M], state M) diag.Diagnostics {
	refused := e.claim(state.Identity(), configured.Destroyed)
	if refused == nil {
		return nil
	}
	if exists, diags := of.Read(ctx, &state); !exists && !diags.HasError() {
		return nil
	}
	return refused
}

// claim notes what a plan does with an object, and refuses a plan that destroys it at one address and creates it at another.
func (e *entity[M]) claim(identity []types.String, fate configured.Fate) diag.Diagnostics {
	if e.provider.HasWritten() {
		return nil
	}
	if first := e.provider.Fate(e.key(identity), fate); first == fate || first == configured.Gone {
		return nil
	}
	return diag.Diagnostics{e.destroyedAndCreated(identity)}
}

// Known reports whether all parts of an identity are known.
func Known(identity []types.String) bool {
	return !slices.ContainsFunc(identity, types.String.IsUnknown)
}

// createdKey is set to createdValue in a resource's private state while the resource exists. If a plan has this key but no
// prior state, it is the second half of a replacement. After an import it is set to importedValue until the first Read.
const createdKey = "created"

var createdValue, importedValue = []byte("true"), []byte(`"import"`)

// Create creates the resource. If that fails, there is no state.
func (e *entity[M]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer e.provider.Call()()
	var plan M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(e.beginWrite(ctx, false)...)
	if resp.Diagnostics.HasError() {
		return
	}
	of := e.of(e.provider)
	resp.Diagnostics.Append(takeWriteOnly(ctx, of, &plan, req.Config)...)
	turn := e.turn(plan.Identity())
	turn.Lock()
	defer turn.Unlock()
	diags := of.Create(ctx, &plan)
	if has(diags, existsAlready) && turn.AwaitDeletion(ctx) {
		diags = of.Create(ctx, &plan)
	}
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		turn.Last = configured.Refused
		return
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, createdKey, createdValue)...)
	resp.Diagnostics.Append(e.setParts(ctx, resp.Identity, plan.Identity())...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// turn is the turn of an object. A creation with an identity that the broker completes has its own.
func (e *entity[M]) turn(identity []types.String) *configured.Turn {
	if !Known(identity) {
		return &configured.Turn{}
	}
	return e.provider.Turn(e.key(identity))
}

// takeWriteOnly completes a plan with the write-only attributes of the configuration.
func takeWriteOnly[M Model](ctx context.Context, of Resource[M], plan *M, from tfsdk.Config) diag.Diagnostics {
	writeOnly, has := of.(WriteOnly[M])
	if !has {
		return nil
	}
	var config M
	diags := from.Get(ctx, &config)
	writeOnly.TakeWriteOnly(plan, config)
	return diags
}

// Read refreshes the state.
func (e *entity[M]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state M
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	// Terraform versions without identities require an identity even when the resource is gone.
	resp.Diagnostics.Append(e.setParts(ctx, resp.Identity, state.Identity())...)
	if resp.Diagnostics.HasError() || !e.provider.Configured() {
		return
	}
	defer e.provider.Call()()
	e.provider.Refreshes(e.key(state.Identity()))
	resp.Diagnostics.Append(reach(ctx, e.provider)...)
	if resp.Diagnostics.HasError() {
		return
	}
	exists, diags := e.of(e.provider).Read(ctx, &state)
	resp.Diagnostics.Append(diags...)
	created, _ := req.Private.GetKey(ctx, createdKey)
	switch {
	case resp.Diagnostics.HasError():
	case !exists && bytes.Equal(created, importedValue):
		resp.Diagnostics.AddError("Nothing to import", "Not found on the broker: "+e.Describe(state.Identity())+". "+e.IDForm())
	case !exists:
		e.claim(state.Identity(), configured.Gone)
		resp.State.RemoveResource(ctx)
	default:
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, createdKey, createdValue)...)
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	}
}

// Update changes the resource.
func (e *entity[M]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer e.provider.Call()()
	var plan, state M
	of := e.of(e.provider)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(e.beginWrite(ctx, false)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(takeWriteOnly(ctx, of, &plan, req.Config)...)
	after := &plan
	resp.Diagnostics.Append(e.whileInUse(ctx, func() diag.Diagnostics { return of.Update(ctx, &plan, &state) })...)
	if resp.Diagnostics.HasError() {
		after = &state
	}
	resp.Diagnostics.Append(e.setParts(ctx, resp.Identity, (*after).Identity())...)
	resp.Diagnostics.Append(resp.State.Set(ctx, after)...)
}

// Delete removes the resource, unless the same apply failed to create it for another address.
func (e *entity[M]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer e.provider.Call()()
	var state M
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(e.beginWrite(ctx, true)...)
	if resp.Diagnostics.HasError() {
		return
	}
	identity := state.Identity()
	turn := e.turn(identity)
	turn.Lock()
	defer turn.Unlock()
	if turn.Last == configured.Refused {
		resp.Diagnostics.Append(e.NotDeleted(identity))
		return
	}
	resp.Diagnostics.Append(e.whileInUse(ctx, func() diag.Diagnostics { return e.of(e.provider).Delete(ctx, state) })...)
	if !resp.Diagnostics.HasError() {
		turn.Last = configured.Deleted
	}
}

// whileInUse makes a change again after another one of the same apply has ended, while objects are in use.
func (e *entity[M]) whileInUse(ctx context.Context, change func() diag.Diagnostics) diag.Diagnostics {
	diags := change()
	for until := time.Now().Add(patience); has(diags, inUse...) && e.provider.AwaitAnother(ctx, until); {
		diags = change()
	}
	return diags
}

// patience is how long a change waits for deletions of the same apply.
const patience = time.Minute

// Ends of the summaries of errors that another deletion of the same apply can solve.
const existsAlready = " exists already"

var inUse = []string{
	"Exchange is in use", "Queue is bound", "Virtual host has queues", "Queues are attached to the pipeline",
	"Queues are bound to the delayed exchange", "Exchanges or queues are bound by others",
}

// has reports whether there is an error with such a summary.
func has(diags diag.Diagnostics, ends ...string) bool {
	return slices.ContainsFunc(diags.Errors(), func(d diag.Diagnostic) bool {
		return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(d.Summary(), end) })
	})
}
