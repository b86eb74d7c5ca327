//go:build chaos

package chaos

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// faultLog prints and counts the faults as they happen.
type faultLog struct {
	t     *testing.T
	began time.Time

	mu   sync.Mutex
	kind map[string]int
	all  int
}

// strike enters that something goes wrong.
func (l *faultLog) strike(kind, format string, args ...any) {
	l.mu.Lock()
	l.kind[kind]++
	l.all++
	l.mu.Unlock()
	l.note(kind+" "+format, args...)
}

// note enters what happens besides.
func (l *faultLog) note(format string, args ...any) {
	l.t.Logf(since(l.began, time.Now())+"  "+format, args...)
}

func (l *faultLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// fault makes something go wrong, and fixes it before it returns. It need not last any longer when all
// is over.
type fault func(over <-chan struct{}, rng *rand.Rand) error

// track has one fault at a time. Those of different tracks overlap.
type track struct {
	name          string
	faults        []fault
	shortest, gap time.Duration
}

// run makes the faults of the track happen, each once in every round, until all is over.
func (tr track) run(over <-chan struct{}, rng *rand.Rand) error {
	for {
		for _, i := range rng.Perm(len(tr.faults)) {
			if !pause(over, between(rng, tr.shortest, tr.shortest+tr.gap)) {
				return nil
			}
			if err := tr.faults[i](over, rng); err != nil {
				return err
			}
		}
	}
}

func between(rng *rand.Rand, shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(rng.Int64N(int64(longest-shortest)+1)).Truncate(10*time.Millisecond)
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }
