package drift

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Check changes every attribute of every object of a resource by hand, one after the other, while each queue has messages.
// Each time, the plan must show only that object and that attribute. It also shows the bindings of a deleted queue or
// exchange, and the other binding that a changed binding has become. Apply must then repair the object and lose no message.
// The whole listing is compared, so it must change nothing else in the vhost. Bindings of others to a deleted object are lost
// with it.
//
// A queue can only be repaired by re-creating it. If it has messages, apply must refuse that, give the reason and change
// nothing. Once the queue is empty, apply must repair it. That takes several readings of the broker's counts, so one fault of
// each queue is repaired together. Every plan and every refusal is checked by itself.
func Check(t *testing.T, subjects func(vhost string) map[string]Subject) {
	t.Helper()
	acctest.Require(t)
	all := results{subjects: subjects}
	t.Run("of", func(t *testing.T) {
		for kind, subject := range subjects("") {
			possible := all.possible(t, kind, subject)
			for i, faults := range rounds(possible) {
				t.Run(fmt.Sprintf("%s queues %d", kind, i), func(t *testing.T) {
					t.Parallel()
					all.checkTogether(t, kind, faults)
				})
			}
			for i, faults := range quickSequences(possible) {
				t.Run(fmt.Sprintf("%s %d", kind, i), func(t *testing.T) {
					t.Parallel()
					all.checkInSequence(t, kind, faults)
				})
			}
		}
	})
	all.report(t)
}

// possible records the faults that the broker refuses, and returns all others.
func (all *results) possible(t *testing.T, kind string, subject Subject) []fault {
	t.Helper()
	empty := brokertest.New(t)
	return slices.DeleteFunc(subject.faults(), func(f fault) bool {
		refusal := subject.refusalOf(t, empty, f)
		if refusal != "" {
			all.add(kind, f, outcome{refusal: refusal})
		}
		return refusal != ""
	})
}

// quickVhosts is how many vhosts share the quick repairs.
const quickVhosts = 4

func quickSequences(faults []fault) [][]fault {
	divided := make([][]fault, quickVhosts)
	for i, f := range slices.DeleteFunc(slices.Clone(faults), fault.remakesQueue) {
		divided[i%quickVhosts] = append(divided[i%quickVhosts], f)
	}
	return divided
}

// rounds groups the faults of queues. A round has at most one fault per queue.
func rounds(faults []fault) [][]fault {
	var gathered [][]fault
	next := map[string]int{}
	for _, f := range faults {
		if !f.remakesQueue() {
			continue
		}
		if next[f.object] == len(gathered) {
			gathered = append(gathered, nil)
		}
		gathered[next[f.object]] = append(gathered[next[f.object]], f)
		next[f.object]++
	}
	return gathered
}

// checkInSequence checks the repair of faults one after the other. After a failed repair it uses a new vhost.
func (all *results) checkInSequence(t *testing.T, kind string, faults []fault) {
	t.Helper()
	var s *vhost
	for _, f := range faults {
		if s == nil {
			s = all.newVhost(t, kind)
		}
		v := s.checkRepair(t, f)
		if v.err != nil {
			s = nil
		}
		all.add(kind, f, v)
	}
	if s == nil {
		return
	}
	for _, queue := range s.Queues {
		if err := s.drain(t, queue); err != nil {
			t.Error(err)
		}
	}
}

// checkRepair causes a fault that can be repaired at once, and applies the repair.
func (s *vhost) checkRepair(t *testing.T, f fault) outcome {
	t.Helper()
	before, held := acctest.List(t, s.Broker), maps.Clone(s.holds)
	s.cause(t, f)
	died := before.Without(acctest.List(t, s.Broker)).And(s.foreign)
	plan, err := s.planShows(t, f)
	if err == nil {
		err = s.core.Apply(t.Context(), plan)
	}
	if err == nil {
		err = errors.Join(before.Without(died).RequireSame(acctest.List(t, s.Broker)), s.planIsEmpty(t))
	}
	if err != nil {
		return outcome{err: err}
	}
	s.keepsMessages(t)
	s.Foreign(t, s.Broker)
	for queue, count := range held {
		if s.holds[queue] == 0 {
			s.fill(t, queue, count)
		}
	}
	return outcome{err: before.RequireSame(acctest.List(t, s.Broker))}
}

// planShows is an error unless the plan changes exactly the objects of the faults, and exactly the attributes of the last
// one.
func (s *vhost) planShows(t *testing.T, faults ...fault) (acctest.Planned, error) {
	t.Helper()
	plan, err := s.core.Plan(t.Context())
	if err != nil {
		return plan, err
	}
	var want []string
	for _, f := range faults {
		want = append(append(want, f.object), f.goesWith...)
	}
	slices.Sort(want)
	before, after := acctest.TopologyOf(plan.Refreshed), acctest.TopologyOf(plan.After)
	if got := acctest.Differences(before, after); !slices.Equal(got, want) {
		return plan, fmt.Errorf("the plan changes %q, want %q", got, want)
	}
	if !reflect.DeepEqual(plan.After, s.applied) {
		return plan, errors.New("the plan is not what was applied at first")
	}
	rest := maps.Clone(plan.Refreshed)
	if rest["topology"] = plan.After["topology"]; !reflect.DeepEqual(rest, plan.After) {
		return plan, errors.New("the plan changes more than the topology")
	}
	last := faults[len(faults)-1]
	if len(last.attributes) == 0 {
		return plan, nil
	}
	kind, name, _ := strings.Cut(last.object, " ")
	got := acctest.DifferentAttributes(kind, acctest.ByName(before[kind])[name], acctest.ByName(after[kind])[name])
	if want := slices.Sorted(slices.Values(last.attributes)); !slices.Equal(got, want) {
		return plan, fmt.Errorf("the plan changes %q of %s, want %q", got, last.object, want)
	}
	return plan, nil
}

func (s *vhost) planIsEmpty(t *testing.T) error {
	t.Helper()
	plan, err := s.core.Plan(t.Context())
	if err == nil && !plan.Empty() {
		left := acctest.Differences(acctest.TopologyOf(plan.Refreshed), acctest.TopologyOf(plan.After))
		err = fmt.Errorf("after the repair, the plan still changes %q", left)
	}
	return err
}
