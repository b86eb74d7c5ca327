package drift

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckComplete fails unless there is a case for each attribute of each object.
func CheckComplete(t *testing.T, subjects map[string]Subject) {
	t.Helper()
	for kind, subject := range subjects {
		covered := map[string]bool{}
		for _, f := range subject.faults() {
			covered[f.object+" "+f.what] = true
			for _, attribute := range f.attributes {
				covered[f.object+" "+attribute] = true
			}
		}
		expanded := subject.Wanted
		require := func(object string, attributes ...string) {
			for _, attribute := range attributes {
				if !covered[object+" "+attribute] {
					t.Errorf("%s: no case for %s of %s", kind, attribute, object)
				}
			}
		}
		for name, e := range expanded.Exchanges {
			require("exchanges "+name, "deleted", "type")
			require("exchanges "+name, prefixed("arguments ", e.Arguments)...)
		}
		for name, q := range expanded.Queues {
			require("queues "+name, "deleted", "type")
			require("queues "+name, prefixed("arguments ", q.Arguments)...)
		}
		for name, policy := range expanded.Policies {
			require("policies "+name, "deleted", "pattern", "apply_to", "priority")
			require("policies "+name, prefixed("definition ", policy.Definition)...)
		}
		for _, b := range expanded.Bindings {
			require("bindings "+b.String(), "removed", "another key")
		}
	}
}

func prefixed(prefix string, arguments topology.Arguments) []string {
	var all []string
	for key := range arguments {
		all = append(all, prefix+key)
	}
	return all
}
