package retrypipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// score is how all cases ended.
type score struct {
	mutex sync.Mutex
	rows  []row
}

type row struct {
	kind string
	fault
	verdict
}

// verdict is how a case ended: well if there is no error. A broker may refuse to have such an object.
type verdict struct {
	err     error
	refusal string
}

func (all *score) add(kind string, f fault, v verdict) {
	all.mutex.Lock()
	defer all.mutex.Unlock()
	all.rows = append(all.rows, row{kind, f, v})
}

// report prints a table and fails the test unless every case ended well.
func (all *score) report(t *testing.T) {
	t.Helper()
	slices.SortStableFunc(all.rows, func(a, b row) int { return strings.Compare(a.kind+a.object, b.kind+b.object) })
	var table strings.Builder
	well, impossible := 0, 0
	for _, r := range all.rows {
		outcome := "ok"
		switch {
		case r.err != nil:
			t.Errorf("%s | %s | %s: %v", r.kind, r.object, r.what, r.err)
			continue
		case r.refusal != "":
			impossible++
			outcome = "cannot be: " + r.refusal
		default:
			well++
		}
		fmt.Fprintf(&table, "%-7s | %s | %s | %s\n", r.kind, r.object, r.what, outcome)
	}
	if !t.Failed() {
		t.Logf("\n%s", table.String())
	}
	t.Logf("drift cases: %d of %d (and %d that the broker refuses to make)", well, len(all.rows)-impossible, impossible)
	expected := 0
	for _, p := range driftPipelines("") {
		expected += len(faultsOf(p))
	}
	if well+impossible != expected {
		t.Errorf("%d cases ended well or cannot be, of %d", well+impossible, expected)
	}
	// Quorum queues have no flags, and arguments that brokers know have one type.
	if impossible > expected/5 {
		t.Errorf("the broker refuses %d of %d faults: what it refuses proves nothing", impossible, expected)
	}
}
