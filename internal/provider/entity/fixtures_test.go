package entity

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// box is a resource with everything that the shell looks at, and nothing else.
type box struct {
	Vhost types.String `tfsdk:"vhost"`
	Shelf types.String `tfsdk:"shelf"`
	Name  types.String `tfsdk:"name"`
	Force types.Bool   `tfsdk:"force_destroy"`
	Label types.String `tfsdk:"label"`
}

// boxKind has what works without a broker. The label is computed; a name "bad" is refused by itself.
func boxKind() Kind[box, string] {
	text := schema.StringAttribute{Optional: true, Computed: true}
	return Kind[box, string]{
		Type:  "box",
		Kind:  "box",
		Parts: []Part{VhostPart, {Name: "shelf"}, {Name: "name", Check: refusing("a/b", "Slash")}},
		Schema: func(context.Context) schema.Schema {
			return schema.Schema{Attributes: map[string]schema.Attribute{
				"vhost": text, "shelf": text, "name": text, "label": text,
				"force_destroy": schema.BoolAttribute{Optional: true},
			}}
		},
		Validate: func(context.Context, box) diag.Diagnostics { return nil },
		Identity: func(b box) []types.String { return []types.String{b.Vhost, b.Shelf, b.Name} },
		Lifecycle: func(_ context.Context, b box) (Lifecycle, diag.Diagnostics) {
			return Lifecycle{Force: b.Force.ValueBool()}, nil
		},
		Compute: func(_ context.Context, plan, _ *box) (bool, diag.Diagnostics) {
			plan.Label = types.StringValue("box " + plan.Name.ValueString())
			return !plan.Name.IsUnknown(), nil
		},
		Specification: func(_ context.Context, b box) (string, diag.Diagnostics) { return b.Name.ValueString(), nil },
		Expand:        func(string) topology.Topology { return topology.New() },
		Check:         refusing("bad", "Bad name"),
		CheckRun:      func(*configured.Provider, string, *string) diag.Diagnostics { return nil },
		Replaces:      func(prior, next string) bool { return prior != next },
	}
}

// refusing refuses one name.
func refusing(bad, summary string) func(name string) []problem.Problem {
	return func(name string) []problem.Problem {
		if name != bad {
			return nil
		}
		return []problem.Problem{{Path: problem.Path{"name"}, Summary: summary}}
	}
}

// called is a box with what a call of Terraform consists of.
type called struct {
	*entity[box, string]
	schema   schema.Schema
	identity identityschema.Schema
}

func newBox(t *testing.T) called {
	t.Helper()
	e := New(boxKind()).(*entity[box, string])
	var response resource.IdentitySchemaResponse
	e.IdentitySchema(t.Context(), resource.IdentitySchemaRequest{}, &response)
	return called{e, e.kind.Schema(t.Context()), response.IdentitySchema}
}

// object is a plan or a state; nil is none.
func (c called) object(t *testing.T, b *box) tftypes.Value {
	t.Helper()
	state := tfsdk.State{Schema: c.schema, Raw: tftypes.NewValue(c.schema.Type().TerraformType(t.Context()), nil)}
	if b != nil {
		if diags := state.Set(t.Context(), b); diags.HasError() {
			t.Fatal(diags)
		}
	}
	return state.Raw
}

func (c called) noIdentity(t *testing.T) *tfsdk.ResourceIdentity {
	t.Helper()
	return &tfsdk.ResourceIdentity{Schema: c.identity, Raw: tftypes.NewValue(c.identity.Type().TerraformType(t.Context()), nil)}
}

func (c called) plan(t *testing.T, next, prior *box) *resource.ModifyPlanResponse {
	t.Helper()
	request := resource.ModifyPlanRequest{
		Plan:  tfsdk.Plan{Schema: c.schema, Raw: c.object(t, next)},
		State: tfsdk.State{Schema: c.schema, Raw: c.object(t, prior)},
	}
	response := resource.ModifyPlanResponse{Plan: request.Plan}
	c.ModifyPlan(t.Context(), request, &response)
	return &response
}

func aBox(name string) *box {
	return &box{
		Vhost: types.StringValue("/"), Shelf: types.StringValue("top"), Name: types.StringValue(name), Label: types.StringUnknown(),
	}
}

// refused fails unless the only error has this summary and this place; an empty summary stands for none.
func refused(t *testing.T, diags diag.Diagnostics, summary string, at path.Path) {
	t.Helper()
	errors := diags.Errors()
	if summary == "" && len(errors) == 0 {
		return
	}
	if len(errors) != 1 || errors[0].Summary() != summary {
		t.Fatalf("%v, want %q", diags, summary)
	}
	if placed, is := errors[0].(diag.DiagnosticWithPath); is && !placed.Path().Equal(at) {
		t.Errorf("%q is at %s, want %s", summary, placed.Path(), at)
	}
}
