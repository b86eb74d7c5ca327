package attribute

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestBindingsAreComparedAsASet(t *testing.T) {
	t.Parallel()
	of := func(destinations ...string) any {
		var t topology.Topology
		for _, destination := range destinations {
			t.Bindings = append(t.Bindings, topology.Binding{Source: "x", Destination: destination})
		}
		return TopologyValue(t).Attributes()["bindings"]
	}
	bindings, _ := of("a", "b").(Bindings)
	for name, test := range map[string]struct {
		other any
		same  bool
	}{
		"another order": {of("b", "a"), true},
		"fewer":         {of("a"), false},
		"others":        {of("a", "c"), false},
		"none":          {of(), false},
		"unknown":       {Bindings{types.SetUnknown(types.StringType)}, false},
		"null":          {Bindings{types.SetNull(types.StringType)}, false},
	} {
		other, _ := test.other.(Bindings)
		if same, _ := bindings.SetSemanticEquals(t.Context(), other); same != test.same {
			t.Errorf("%s: same %t", name, same)
		}
	}
}
