package drift

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckComplete fails unless there is a case for each attribute of each object that a plan shows.
func CheckComplete(t *testing.T, subjects map[string]Subject) {
	t.Helper()
	for kind, subject := range subjects {
		covered := map[string]bool{}
		for _, f := range subject.faults() {
			for _, attribute := range append(f.attributes, f.what) {
				covered[f.object+" "+attribute] = true
			}
		}
		require := func(object string, attributes ...string) {
			for _, attribute := range attributes {
				if !covered[object+" "+attribute] {
					t.Errorf("%s: no case for %s of %s", kind, attribute, object)
				}
			}
		}
		view := topology.Render(subject.Wanted)
		for objects, lines := range map[string]map[string]string{"exchanges": view.Exchanges, "queues": view.Queues, "policies": view.Policies} {
			for name, line := range lines {
				require(objects+" "+name, append(acctest.DifferentAttributes(objects, "", line), "deleted")...)
			}
		}
		for _, binding := range view.Bindings {
			require("bindings "+binding, "removed", "another key")
		}
	}
}
