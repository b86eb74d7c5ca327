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
		view := topology.Render(expanded, expanded)
		require := func(object string, attributes ...string) {
			for _, attribute := range attributes {
				if !covered[object+" "+attribute] {
					t.Errorf("%s: no case for %s of %s", kind, attribute, object)
				}
			}
		}
		for name, e := range view.Exchanges {
			require("exchanges "+name, "deleted", "type")
			require("exchanges "+name, prefixed("arguments ", e.Arguments)...)
		}
		for name, q := range view.Queues {
			require("queues "+name, "deleted", "type")
			require("queues "+name, prefixed("arguments ", q.Arguments)...)
		}
		for name, policy := range view.Policies {
			require("policies "+name, "deleted", "pattern", "apply_to", "priority")
			require("policies "+name, prefixed("definition ", policy.Definition)...)
		}
		for _, b := range view.Bindings {
			require("bindings "+b, "removed", "another key")
		}
	}
}

func prefixed(prefix string, arguments map[string]string) []string {
	var all []string
	for key := range arguments {
		all = append(all, prefix+key)
	}
	return all
}
