package topology

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// many is a vhost with n pipelines of a work queue each, and the first of them.
func many(n int) (Vhost, Pipeline) {
	vhost := Vhost{Topology: newTopology(), Version: Version{4, 3}, Nodes: 1}
	var first Pipeline
	for i := range n {
		p := one(WorkQueue{Type: Quorum})
		p.Name = fmt.Sprintf("p%03d", i)
		p.WorkQueues = map[string]WorkQueue{"work." + p.Name: {Type: Quorum}}
		if i == 0 {
			first = p
		}
		objects := Expand(p)
		maps.Copy(vhost.Exchanges, objects.Exchanges)
		maps.Copy(vhost.Queues, objects.Queues)
		maps.Copy(vhost.Policies, objects.Policies)
		vhost.Bindings = append(vhost.Bindings, objects.Bindings...)
		vhost.Queues["work."+p.Name] = Queue{Type: Quorum}
	}
	return vhost, first
}

// Every pipeline of a vhost is compared with all of the vhost. That may take as long as the vhost is
// large, but not longer, or a plan of many pipelines never ends.
//
//nolint:paralleltest // measures
func TestLookingAtALiveVhostGrowsWithItsSize(t *testing.T) {
	for what, look := range map[string]func(Vhost, Pipeline){
		"CheckLive": func(vhost Vhost, p Pipeline) { CheckLive(p, &p, vhost) },
		"Owned":     func(vhost Vhost, p Pipeline) { Owned(p, vhost.Topology) },
		"Unprotected": func(vhost Vhost, p Pipeline) {
			Unprotected(p.Names(), Owned(p, vhost.Topology), Topology{}, vhost)
		},
	} {
		few, lots := shortest(50, look), shortest(1000, look)
		t.Logf("%s: %s with 50 pipelines, %s with 1000", what, few, lots)
		if lots > 80*few { // quadratic growth would be 400
			t.Errorf("%s: %s with 50 pipelines, %s with 1000", what, few, lots)
		}
	}
}

// shortest of several runs, which says most where others use the processors, too.
func shortest(pipelines int, look func(Vhost, Pipeline)) time.Duration {
	vhost, p := many(pipelines)
	best := time.Hour
	for range 10 {
		began := time.Now()
		look(vhost, p)
		best = min(best, time.Since(began))
	}
	return best
}

func BenchmarkPlanInAVhostOfManyPipelines(b *testing.B) {
	vhost, p := many(200)
	for what, look := range map[string]func(){
		"CheckLive":   func() { CheckLive(p, &p, vhost) },
		"Owned":       func() { Owned(p, vhost.Topology) },
		"Unprotected": func() { Unprotected(p.Names(), Owned(p, vhost.Topology), Topology{}, vhost) },
	} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				look()
			}
		})
	}
}
