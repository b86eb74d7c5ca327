package drift

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// results are the outcomes of all cases.
type results struct {
	subjects func(vhost string) map[string]Subject

	mutex sync.Mutex
	rows  []row
}

type row struct {
	kind string
	fault
	outcome
}

// outcome is the result of a case, which is good if err is nil. The refusal is the broker's reason for refusing such an
// object.
type outcome struct {
	err     error
	refusal string
}

func (all *results) add(kind string, f fault, v outcome) {
	all.mutex.Lock()
	defer all.mutex.Unlock()
	all.rows = append(all.rows, row{kind, f, v})
}

// report prints a table, and fails the test unless every case ended well.
func (all *results) report(t *testing.T) {
	t.Helper()
	slices.SortStableFunc(all.rows, func(a, b row) int { return strings.Compare(a.kind+a.object, b.kind+b.object) })
	var table strings.Builder
	well, impossible := 0, 0
	for _, r := range all.rows {
		text := "ok"
		switch {
		case r.err != nil:
			t.Errorf("%s | %s | %s: %v", r.kind, r.object, r.what, r.err)
			continue
		case r.refusal != "":
			impossible++
			text = "cannot be: " + r.refusal
		default:
			well++
		}
		fmt.Fprintf(&table, "%-7s | %s | %s | %s\n", r.kind, r.object, r.what, text)
	}
	if !t.Failed() {
		t.Logf("\n%s", table.String())
	}
	t.Logf("drift cases: %d of %d (and %d that the broker refuses to make)", well, len(all.rows)-impossible, impossible)
	expected := 0
	for _, subject := range all.subjects("") {
		expected += len(subject.faults())
	}
	if well+impossible != expected {
		t.Errorf("%d cases ended well or cannot be, of %d", well+impossible, expected)
	}
	// Quorum queues have no flags, and an argument that brokers know accepts only one type.
	if impossible > expected/5 {
		t.Errorf("the broker refuses %d of %d faults: what it refuses proves nothing", impossible, expected)
	}
}

// CheckComplete fails unless there is a case for each attribute of each object that a plan shows.
func CheckComplete(t *testing.T, subjects map[string]Subject) {
	t.Helper()
	for kind, subject := range subjects {
		covered := map[string]bool{}
		for _, f := range subject.faults() {
			for _, attribute := range append(f.attributes, f.what) {
				covered[f.object+" "+attribute] = true
			}
		}
		require := func(object string, attributes ...string) {
			for _, attribute := range attributes {
				if !covered[object+" "+attribute] {
					t.Errorf("%s: no case for %s of %s", kind, attribute, object)
				}
			}
		}
		view := topology.Render(subject.Wanted)
		for objects, lines := range map[string]map[string]string{"exchanges": view.Exchanges, "queues": view.Queues, "policies": view.Policies} {
			for name, line := range lines {
				require(objects+" "+name, append(acctest.DifferentAttributes(objects, "", line), "deleted")...)
			}
		}
		for _, binding := range view.Bindings {
			require("bindings "+binding, "removed", "another key")
		}
	}
}
