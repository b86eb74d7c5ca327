package retrypipeline_test

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// The matrix has a case for each attribute of each object that pipelines expand to.
func TestDriftMatrixIsComplete(t *testing.T) {
	t.Parallel()
	for kind, p := range driftPipelines("v") {
		covered := map[string]bool{}
		for _, f := range faultsOf(p) {
			covered[f.object+" "+f.what] = true
			for _, attribute := range f.attributes {
				covered[f.object+" "+attribute] = true
			}
		}
		expanded := pipeline.Expand(p)
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
