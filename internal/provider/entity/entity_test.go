package entity

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
)

func TestConfigure(t *testing.T) {
	t.Parallel()
	box, made := newBox(t), configured.Unconnected()
	for _, c := range []struct {
		data    any
		refused string
	}{{nil, ""}, {made, ""}, {"something else", "Unexpected provider data"}} {
		var response resource.ConfigureResponse
		box.Configure(t.Context(), resource.ConfigureRequest{ProviderData: c.data}, &response)
		refused(t, response.Diagnostics, c.refused, path.Empty())
	}
	if box.provider != made {
		t.Error("the configured provider is not taken over")
	}
}

// As long as the broker cannot be reached, apply changes nothing, and no resource counts as gone.
func TestApplyWithoutAConnection(t *testing.T) {
	t.Parallel()
	const summary = "The provider is not configured"
	box := newBox(t)
	plan := tfsdk.Plan{Schema: box.schema, Raw: box.object(t, aBox("a"))}
	state := tfsdk.State{Schema: box.schema, Raw: box.object(t, aBox("a"))}

	created := resource.CreateResponse{State: tfsdk.State{Schema: box.schema, Raw: box.object(t, nil)}, Identity: box.noIdentity(t)}
	box.Create(t.Context(), resource.CreateRequest{Plan: plan}, &created)
	refused(t, created.Diagnostics, summary, path.Empty())
	updated := resource.UpdateResponse{State: state, Identity: box.noIdentity(t)}
	box.Update(t.Context(), resource.UpdateRequest{Plan: plan, State: state}, &updated)
	refused(t, updated.Diagnostics, summary, path.Empty())
	deleted := resource.DeleteResponse{State: state}
	box.Delete(t.Context(), resource.DeleteRequest{State: state}, &deleted)
	refused(t, deleted.Diagnostics, summary, path.Empty())

	read := resource.ReadResponse{State: state, Identity: box.noIdentity(t)}
	box.Read(t.Context(), resource.ReadRequest{State: state}, &read)
	refused(t, read.Diagnostics, "", path.Empty())
	if read.State.Raw.IsNull() || !created.State.Raw.IsNull() {
		t.Error("the state changed")
	}
	var name types.String
	if read.Identity.GetAttribute(t.Context(), path.Root("name"), &name); name != types.StringValue("a") {
		t.Errorf("identity %s", name)
	}
}

func TestPlanWithoutAConnection(t *testing.T) {
	t.Parallel()
	response := newBox(t).plan(t, aBox("a"), nil)
	refused(t, response.Diagnostics, "", path.Empty())
	var planned box
	response.Plan.Get(t.Context(), &planned)
	if planned.Label != types.StringValue("box a") {
		t.Errorf("label %s", planned.Label)
	}
}

func TestPlanOfAReplacement(t *testing.T) {
	t.Parallel()
	c := newBox(t)
	refused(t, c.plan(t, aBox("b"), aBox("a")).Diagnostics, "", path.Empty())
	refused(t, c.plan(t, aBox("f"), aBox("e")).Diagnostics, "", path.Empty())
	if !c.provider.HasPlanned(configured.Key{Kind: "box", Vhost: "/", Name: "top/b"}) {
		t.Error("the plan is not noted")
	}
}
