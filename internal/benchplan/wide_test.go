//go:build bench

package benchplan

import (
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// BenchmarkWidePlan plans the pipeline of 1,000 work queues in this process, for a profile.
func BenchmarkWidePlan(b *testing.B) {
	const name = "p000"
	s := scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == "wide" })]
	broker, pipelines := s.prepare(b)
	core := acctest.Core{
		Type: "rabbitmq_retry_pipeline", Times: apply.DefaultTimes(),
		Config: map[string]any{"name": name, "vhost": pipelines[name], "delays": delays, "work_queues": s.configured(name)},
	}
	if _, err := core.PlanAndApply(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := core.Plan(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	s.forget(b, broker, pipelines)
}
