package preflight

import (
	"fmt"
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// many is a vhost with n pipelines of a work queue each, and the first of them.
func many(n int) (topology.Vhost, pipeline.Pipeline) {
	vhost := topology.Vhost{Topology: topology.New(), Version: topology.Version{Major: 4, Minor: 3}, Nodes: 1}
	var first pipeline.Pipeline
	for i := range n {
		p := one(pipeline.WorkQueue{Type: topology.Quorum})
		p.Name = fmt.Sprintf("p%03d", i)
		p.WorkQueues = map[string]pipeline.WorkQueue{"work." + p.Name: {Type: topology.Quorum}}
		if i == 0 {
			first = p
		}
		objects := pipeline.Expand(p)
		maps.Copy(vhost.Exchanges, objects.Exchanges)
		maps.Copy(vhost.Queues, objects.Queues)
		maps.Copy(vhost.Policies, objects.Policies)
		vhost.Bindings = append(vhost.Bindings, objects.Bindings...)
		vhost.Queues["work."+p.Name] = topology.Queue{Type: topology.Quorum}
	}
	return vhost, first
}

// Every pipeline of a vhost is compared with all of the vhost. That may take as long as the vhost is
// large, but not longer, or a plan of many pipelines never ends.
//
//nolint:paralleltest // measures
func TestLookingAtALiveVhostGrowsWithItsSize(t *testing.T) {
	for what, look := range map[string]func(topology.Vhost, pipeline.Pipeline){
		"CheckLive": func(vhost topology.Vhost, p pipeline.Pipeline) { CheckLive(p, &p, vhost) },
		"Owned":     func(vhost topology.Vhost, p pipeline.Pipeline) { pipeline.Owned(p, vhost.Topology) },
		"DeadLettersAtRisk": func(vhost topology.Vhost, p pipeline.Pipeline) {
			topology.DeadLettersAtRisk(pipeline.Owned(p, vhost.Topology), topology.Topology{}, vhost, nil)
		},
	} {
		few, lots := shortest(t, 50, look), shortest(t, 1000, look)
		t.Logf("%s: %s with 50 pipelines, %s with 1000", what, few, lots)
		if lots > 80*few { // quadratic growth would be 400
			t.Errorf("%s: %s with 50 pipelines, %s with 1000", what, few, lots)
		}
	}
}

// shortest processor time of up to ten runs: others may use the processors, too.
func shortest(t *testing.T, pipelines int, look func(topology.Vhost, pipeline.Pipeline)) time.Duration {
	t.Helper()
	vhost, p := many(pipelines)
	best := time.Hour
	for start, runs := time.Now(), 0; runs < 10 && time.Since(start) < time.Second; runs++ {
		began := processorTime(t)
		look(vhost, p)
		best = min(best, processorTime(t)-began)
	}
	return max(best, time.Microsecond)
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkPlanInAVhostOfManyPipelines(b *testing.B) {
	vhost, p := many(200)
	for what, look := range map[string]func(){
		"CheckLive":         func() { CheckLive(p, &p, vhost) },
		"Owned":             func() { pipeline.Owned(p, vhost.Topology) },
		"DeadLettersAtRisk": func() { topology.DeadLettersAtRisk(pipeline.Owned(p, vhost.Topology), topology.Topology{}, vhost, nil) },
	} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				look()
			}
		})
	}
}
