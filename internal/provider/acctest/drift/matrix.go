package drift

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// Check changes every attribute of every object of a resource by hand, while each queue has messages. The changes of a round
// are to different objects, and none needs an object that another one changes. The plan must show exactly these objects, and of
// each exactly the changed attribute. It also shows the bindings of a deleted queue or exchange, and the other binding that a
// changed binding has become. Apply must then repair the objects and lose no message. The whole listing is compared, so it must
// change nothing else in the vhost. Bindings of others to a deleted object are lost with it.
//
// A queue can only be repaired by re-creating it. If it has messages, apply must refuse that, give the reason and change
// nothing. Once the queue is empty, apply must repair it. In such a round, each plan shows one more change.
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
			for i, rounds := range divided(quickRounds(possible)) {
				t.Run(fmt.Sprintf("%s %d", kind, i), func(t *testing.T) {
					t.Parallel()
					all.checkInSequence(t, kind, rounds)
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

// quickRounds groups the faults that can be repaired at once, so that none affects another one of its round.
func quickRounds(faults []fault) [][]fault {
	var rounds [][]fault
	for _, f := range slices.DeleteFunc(slices.Clone(faults), fault.remakesQueue) {
		i := slices.IndexFunc(rounds, func(round []fault) bool { return !slices.ContainsFunc(round, f.affects) })
		if i < 0 {
			i, rounds = len(rounds), append(rounds, nil)
		}
		rounds[i] = append(rounds[i], f)
	}
	return rounds
}

// divided divides rounds between two vhosts.
func divided(rounds [][]fault) [2][][]fault {
	return [2][][]fault{rounds[:len(rounds)/2], rounds[len(rounds)/2:]}
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

// checkInSequence checks the repair of rounds one after the other. After a failed repair it uses a new vhost.
func (all *results) checkInSequence(t *testing.T, kind string, rounds [][]fault) {
	t.Helper()
	var s *vhost
	for _, faults := range rounds {
		if s == nil {
			s = all.newVhost(t, kind)
		}
		v := s.checkRepair(t, faults)
		if v.err != nil {
			s = nil
		}
		for _, f := range faults {
			all.add(kind, f, v)
		}
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

// checkRepair causes faults that can be repaired at once, and applies the repair.
func (s *vhost) checkRepair(t *testing.T, faults []fault) outcome {
	t.Helper()
	before, held := acctest.List(t, s.Broker), maps.Clone(s.holds)
	for _, f := range faults {
		s.cause(t, f)
	}
	died := before.Without(acctest.List(t, s.Broker)).And(s.foreign)
	plan, err := s.planShows(t, faults...)
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

// planShows is an error unless the plan changes exactly the objects of the faults, and of each exactly its attributes.
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
	for _, f := range faults {
		kind, name, _ := strings.Cut(f.object, " ")
		got := acctest.DifferentAttributes(kind, acctest.ByName(before[kind])[name], acctest.ByName(after[kind])[name])
		if want := slices.Sorted(slices.Values(f.attributes)); len(want) > 0 && !slices.Equal(got, want) {
			return plan, fmt.Errorf("the plan changes %q of %s, want %q", got, f.object, want)
		}
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
