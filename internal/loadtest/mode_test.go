//go:build load

package loadtest

import (
	"maps"
	"sync"
)

// mode is how the application treats a work queue. Only a queue of the pipeline may be rejected from:
// elsewhere the broker drops what is rejected.
type mode int

const (
	unused   mode = iota // nothing is published or consumed
	draining             // nothing is published any more, what is there is processed
	acked                // everything that is published is processed
	limited              // like rejected, but consumed more slowly than published
	rejected
)

// modes are those of all work queues; they change while the load runs.
type modes struct {
	mu sync.RWMutex
	of map[string]mode
}

func (m *modes) get(queue string) mode {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.of[queue]
}

func (m *modes) set(of map[string]mode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of = of
}

// atLeast lists the queues of this mode and of those that come after it.
func (m *modes) atLeast(least mode) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var queues []string
	for queue, mode := range m.of {
		if mode >= least {
			queues = append(queues, queue)
		}
	}
	return queues
}

// during is what may be done while one changes into the other: what both allow.
func during(before, after map[string]mode) map[string]mode {
	both := map[string]mode{}
	for queue, mode := range before {
		both[queue] = min(mode, after[queue])
	}
	return both
}

// drained is the same with queues that go out of use still consumed.
func drained(before, between map[string]mode) (modes map[string]mode, some bool) {
	modes = maps.Clone(between)
	for queue, mode := range before {
		if mode != unused && between[queue] == unused {
			modes[queue], some = draining, true
		}
	}
	return modes, some
}
