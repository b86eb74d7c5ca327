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
)

// box is a resource with only the attributes that package entity uses.
type box struct {
	Vhost types.String `tfsdk:"vhost"`
	Shelf types.String `tfsdk:"shelf"`
	Name  types.String `tfsdk:"name"`
	Label types.String `tfsdk:"label"`
}

func boxType() ResourceType {
	text := schema.StringAttribute{Optional: true, Computed: true}
	return ResourceType{
		Type:  "box",
		Name:  "box",
		Parts: []Part{VhostPart, {Name: "shelf", Example: "top"}, {Name: "name", Example: "tea/1", Check: refusing("a/b", "Slash")}},
		Schema: func(context.Context) schema.Schema {
			return schema.Schema{Attributes: map[string]schema.Attribute{"vhost": text, "shelf": text, "name": text, "label": text}}
		},
	}
}

// boxes implement the calls that work without a broker. The label is computed.
type boxes struct{ Resource[box] }

func (b box) Identity() []types.String { return []types.String{b.Vhost, b.Shelf, b.Name} }

func (boxes) Plan(_ context.Context, plan, _ *box) diag.Diagnostics {
	plan.Label = types.StringValue("box " + plan.Name.ValueString())
	return nil
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

// called is a box with the parts of a call from Terraform.
type called struct {
	*entity[box]
	schema   schema.Schema
	identity identityschema.Schema
}

func newBox(t *testing.T) called {
	t.Helper()
	e := Definition[box]{boxType(), func(*configured.Provider) Resource[box] { return boxes{} }}.entity()
	var response resource.IdentitySchemaResponse
	e.IdentitySchema(t.Context(), resource.IdentitySchemaRequest{}, &response)
	return called{e, e.ResourceType.Schema(t.Context()), response.IdentitySchema}
}

// object is a plan or a state, null for nil.
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

// refused fails unless the only error has this summary and this path. An empty summary means no error.
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
