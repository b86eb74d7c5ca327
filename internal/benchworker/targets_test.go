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

	ofBare    = 0.9
	ofShovel  = 1.5
	ofOne     = 0.9
	memoryMiB = 40
	// perMessage is how many reads and writes a message may take: the figure that no other work on the
	// machine can change.
	perMessage = 1
)

// misses tells which targets the row does not reach, of those that were measured.
func (r *row) misses() (misses []string) {
	if r.queueType != topology.Quorum || r.size != targetSize || r.window != worker.DefaultPrefetch {
		return nil
	}
	for _, target := range []struct {
		side, other string
		least       float64
	}{{one, bare, ofBare}, {one, shovel, ofShovel}, {many, one, ofOne}} {
		if got := r.ratio(target.side, target.other); got != 0 && got < target.least {
			misses = append(misses, fmt.Sprintf("%s is %.2f times as fast as %s, want %.1f", target.side, got, target.other, target.least))
		}
	}
	if got := r.median(one, peak); got > memoryMiB {
		misses = append(misses, fmt.Sprintf("the worker takes %.1f MiB, want at most %d", got, memoryMiB))
	}
	if got := r.median(one, calls); got > perMessage {
		misses = append(misses, fmt.Sprintf("the worker reads and writes %.2f times per message, want at most %d", got, perMessage))
	}
	return misses
}
