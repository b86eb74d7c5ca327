package drift

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// checkTogether causes one fault on each of several queues. The plan must show each fault by itself. While the queues have
// messages, the apply must refuse the repair and name each queue with its messages. Once the queues are empty, it must repair
// them all.
func (all *results) checkTogether(t *testing.T, kind string, faults []fault) {
	t.Helper()
	s := all.newVhost(t, kind)
	before := acctest.List(t, s.Broker)
	shown := map[string]error{}
	for i, f := range faults {
		s.cause(t, f)
		_, shown[f.object] = s.planShows(t, faults[:i+1]...)
	}
	refused := s.refusesToRepair(t, faults)
	repaired := s.repairs(t, faults, before)
	for _, f := range faults {
		all.add(kind, f, outcome{err: errors.Join(shown[f.object], refused[f.object], repaired)})
	}
}

// refusesToRepair fills each altered queue with another number of messages. It returns an error for each queue that the
// refusal does not name, and for all queues if the broker was changed.
func (s *vhost) refusesToRepair(t *testing.T, faults []fault) map[string]error {
	t.Helper()
	holding := s.holding(faults)
	if len(holding) == 0 {
		return nil
	}
	for i, f := range holding {
		s.fill(t, queueOf(f), 20+i)
	}
	// At first, the broker has not counted these messages, and the first counted message already causes the refusal. Once the
	// broker has counted them all, the refusal names all queues.
	s.core.Times = acctest.Times()
	if _, err := s.refusal(t, faults); err != nil {
		return forAll(faults, err)
	}
	s.core.Times = acctest.Quick()
	for _, f := range holding {
		acctest.AwaitCount(t, s.Broker, queueOf(f), s.holds[queueOf(f)])
	}
	refusal, err := s.refusal(t, faults)
	if err != nil {
		return forAll(faults, err)
	}
	missing := map[string]error{}
	for _, f := range holding {
		if reason := fmt.Sprintf("  - %s: %d messages", queueOf(f), s.holds[queueOf(f)]); !strings.Contains(refusal.Error(), reason) {
			missing[f.object] = fmt.Errorf("the refusal does not say %q: %w", reason, refusal)
		}
	}
	if named := strings.Count(refusal.Error(), "  - "); named != len(holding) {
		return forAll(faults, fmt.Errorf("the refusal names %d queues instead of %d: %w", named, len(holding), refusal))
	}
	return missing
}

// refusal is the error of the refused repair, which must change nothing.
func (s *vhost) refusal(t *testing.T, faults []fault) (refusal, failure error) {
	t.Helper()
	before := acctest.List(t, s.Broker)
	plan, err := s.planShows(t, faults...)
	if err != nil {
		return nil, err
	}
	refusal = s.core.Apply(t.Context(), plan)
	if refusal == nil {
		return nil, errors.New("the repair was not refused although the queues hold messages")
	}
	if !strings.Contains(refusal.Error(), "would lose messages") {
		return refusal, fmt.Errorf("the refusal has another reason: %w", refusal)
	}
	s.keepsMessages(t)
	_, err = s.planShows(t, faults...)
	if err := errors.Join(before.RequireSame(acctest.List(t, s.Broker)), err); err != nil {
		return refusal, fmt.Errorf("after the refusal: %w", err)
	}
	return refusal, nil
}

// repairs empties the altered queues and applies the repair.
func (s *vhost) repairs(t *testing.T, faults []fault, before acctest.Listing) error {
	t.Helper()
	for _, f := range s.holding(faults) {
		if err := s.drain(t, queueOf(f)); err != nil {
			return err
		}
	}
	plan, err := s.planShows(t, faults...)
	if err == nil {
		err = s.core.Apply(t.Context(), plan)
	}
	if err != nil {
		return err
	}
	s.keepsMessages(t)
	return errors.Join(before.RequireSame(acctest.List(t, s.Broker)), s.planIsEmpty(t))
}

// holding are the faults of queues that keep messages.
func (s *vhost) holding(faults []fault) []fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !slices.Contains(s.Queues, queueOf(f)) })
}

func queueOf(f fault) string { return strings.TrimPrefix(f.object, "queues ") }

func forAll(faults []fault, err error) map[string]error {
	all := map[string]error{}
	for _, f := range faults {
		all[f.object] = err
	}
	return all
}
