//go:build bench

package benchworker

import (
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// Targets, for 1 KiB with the default window on quorum queues.
const (
	targetSize = 1024

	ofBare = 0.95
	// A shovel on TCP is what another client can do. One within the broker has no network to cross, so it is printed only.
	ofRemote  = 0.9
	ofOne     = 0.9
	memoryMiB = 40
	// ofBareCPU is the share of the bare pipe's processor time that the worker may take.
	ofBareCPU = 1
	// perMessage is how many reads and writes a message may take: the figure that no other work on the
	// machine can change.
	perMessage = 1
)

// misses lists the targets that the row does not reach, of those that were measured.
func (r *row) misses() (misses []string) {
	if r.queueType != topology.Quorum || r.size != targetSize || r.window != worker.DefaultPrefetch {
		return nil
	}
	for _, target := range []struct {
		side, other string
		least       float64
	}{{one, bare, ofBare}, {one, remote, ofRemote}, {many, one, ofOne}} {
		if got := r.results.Ratio(target.side, target.other, rate); got != 0 && got < target.least {
			misses = append(misses, fmt.Sprintf("%s is %.2f times as fast as %s, want %.2f", target.side, got, target.other, target.least))
		}
	}
	if got := r.results.Ratio(one, bare, cpu); got > ofBareCPU {
		misses = append(misses, fmt.Sprintf("the worker takes %.2f times the processor time of the bare pipe, want at most %d", got, ofBareCPU))
	}
	if got := r.results.Median(one, peak); got > memoryMiB {
		misses = append(misses, fmt.Sprintf("the worker takes %.1f MiB, want at most %d", got, memoryMiB))
	}
	if got := r.results.Median(one, calls); got > perMessage {
		misses = append(misses, fmt.Sprintf("the worker reads and writes %.2f times per message, want at most %d", got, perMessage))
	}
	return misses
}
