package entity

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
)

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
	forced := aBox("a")
	forced.Force = types.BoolValue(true)
	refused(t, c.plan(t, aBox("b"), forced).Diagnostics, "", path.Empty())
	refused(t, c.plan(t, aBox("f"), aBox("e")).Diagnostics, "", path.Empty())
	if !c.provider.HasPlanned(configured.Key{Kind: "box", Vhost: "/", Name: "top/b"}) {
		t.Error("the plan is not noted")
	}
}

func TestPlanThatCannotWork(t *testing.T) {
	t.Parallel()
	refused(t, newBox(t).plan(t, aBox("bad"), nil).Diagnostics, "Bad name", path.Root("name"))
}
