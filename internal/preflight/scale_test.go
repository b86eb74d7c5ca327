package preflight

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// many returns a vhost with n pipelines of one work queue each, and the first pipeline.
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
		objects := p.Expand()
		maps.Copy(vhost.Exchanges, objects.Exchanges)
		maps.Copy(vhost.Queues, objects.Queues)
		maps.Copy(vhost.Policies, objects.Policies)
		vhost.Bindings = append(vhost.Bindings, objects.Bindings...)
		vhost.Queues["work."+p.Name] = topology.Queue{Type: topology.Quorum}
	}
	return vhost, first
}

// Every pipeline of a vhost is compared with the whole vhost. The time must grow only linearly with the vhost's size,
// or a plan of many pipelines never ends.
//
//nolint:paralleltest // measures
func TestLookingAtALiveVhostGrowsWithItsSize(t *testing.T) {
	for what, look := range map[string]func(topology.Vhost, pipeline.Pipeline){
		"CheckLive": func(vhost topology.Vhost, p pipeline.Pipeline) { CheckLive(p, &p, vhost) },
		"Owned":     func(vhost topology.Vhost, p pipeline.Pipeline) { p.Owned(vhost.Topology) },
		"DeadLettersAtRisk": func(vhost topology.Vhost, p pipeline.Pipeline) {
			topology.DeadLettersAtRisk(p.Owned(vhost.Topology), topology.Topology{}, vhost, nil)
		},
	} {
		few, lots := shortest(t, 50, look), shortest(t, 1000, look)
		t.Logf("%s: %s with 50 pipelines, %s with 1000", what, few, lots)
		if lots > 80*few { // quadratic growth would be 400
			t.Errorf("%s: %s with 50 pipelines, %s with 1000", what, few, lots)
		}
	}
}

// shortest returns the shortest processor time of up to ten runs, because other processes can use the processors too.
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
		"Owned":             func() { p.Owned(vhost.Topology) },
		"DeadLettersAtRisk": func() { topology.DeadLettersAtRisk(p.Owned(vhost.Topology), topology.Topology{}, vhost, nil) },
	} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				look()
			}
		})
	}
}

// A check finds the same problems near a pipeline as in the whole vhost.
func TestNothingIsOverlookedNearAPipeline(t *testing.T) {
	t.Parallel()
	whole, first := many(5)
	first.WorkQueues = map[string]pipeline.WorkQueue{
		"work.p000": {Type: topology.Quorum}, "work.p001": {Type: topology.Quorum}, "p002.inbox": {Type: topology.Quorum},
		"missing": {Type: topology.Quorum}, "work.p003": {Type: topology.Classic},
	}
	whole.Policies["org"] = topology.Policy{Pattern: "^work", ApplyTo: "all", Priority: 2000, Definition: topology.Arguments{"message-ttl": int64(5)}}
	altered := whole.Policies["retry/p004/queues"]
	altered.ApplyTo, altered.Pattern = "all", ".*"
	altered.Definition = topology.Arguments{"alternate-exchange": "elsewhere", "dead-letter-exchange": "p004.dlx"}
	whole.Policies["retry/p004/queues"] = altered
	whole.Bindings = append(whole.Bindings,
		topology.Binding{Source: "p000.dlx", Destination: "work.p000"}, topology.Binding{Source: "p000.return", Destination: "p003.inbox"},
		topology.Binding{Source: "p004.retry", Destination: "p000.inbox"}, topology.Binding{Source: "p000.failed", Destination: "p001.dlx", ToExchange: true},
		pipeline.AttachmentBinding("p000", "work.p000"),
	)
	center := nearby.Center{Pipelines: []string{"p000"}, Queues: slices.Collect(maps.Keys(first.WorkQueues))}
	near := nearby.NewIndex(whole).Near(center)
	for _, prior := range []*pipeline.Pipeline{nil, &first} {
		want := CheckLive(first, prior, whole)
		if len(want.Of(Wrong)) < 3 || len(want.Of(Notice)) < 2 {
			t.Errorf("too little to overlook: %+v", want)
		}
		require.Empty(t, cmp.Diff(want, CheckLive(first, prior, near)))
	}
	whole.Policies = maps.Clone(whole.Policies) // without policies that take precedence over the pipeline's
	maps.DeleteFunc(whole.Policies, func(name string, _ topology.Policy) bool { return name == "org" || name == "retry/p004/queues" })
	near = nearby.NewIndex(whole).Near(center)
	destroyed := func(vhost topology.Vhost) []any {
		live := first.Owned(vhost.Topology)
		return []any{
			pipeline.Attached("p000", vhost.Topology), first.Effects(nil, vhost.Topology).Bindings,
			topology.DeadLettersAtRisk(live, topology.New(), vhost, nil),
			topology.DroppedDeadLetters([]string{"work.p000", "work.p001"}, live, topology.New(), vhost, nil),
		}
	}
	require.Empty(t, cmp.Diff(destroyed(whole), destroyed(near)))
	for i, answer := range destroyed(whole) {
		if reflect.ValueOf(answer).Len() == 0 {
			t.Errorf("answer %d of a destroy is empty", i)
		}
	}
}
