package configured

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A Turn lets one resource at a time create or delete the same object. An apply can have several resources for one object, if an
// address changes without a moved block, or if a list used with count loses its first element.
type Turn struct {
	sync.Mutex
	// Last is what the last resource did.
	Last Outcome
}

// Outcome is how a creation or deletion in this apply ended.
type Outcome string

// All outcomes.
const (
	Made    Outcome = "made"
	Refused Outcome = "creation failed"
	Deleted Outcome = "deleted"
)

// Turn is the turn of an object, which any comparable value identifies. It lasts until the next refresh.
func (s *Provider) Turn(object any) *Turn {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.turns[object] == nil {
		s.turns[object] = &Turn{}
	}
	return s.turns[object]
}

// BindingTurn is the turn of a binding.
func (s *Provider) BindingTurn(vhost string, b topology.Binding) *Turn {
	return s.Turn([2]string{vhost, b.String()})
}

// Making waits until no other creation in this process makes one of these objects. Two creations that list a vhost at the
// same moment would not find each other's objects, and brokers can tell both that an object is new.
func (s *Provider) Making(objects []string) (made func()) {
	slices.Sort(objects) // so that two creations do not wait for each other
	var turns []*Turn
	for _, object := range slices.Compact(objects) {
		turn := s.Turn("making " + object)
		turn.Lock()
		turns = append(turns, turn)
	}
	return func() {
		for _, turn := range turns {
			turn.Unlock()
		}
	}
}

// AwaitDeletion gives another resource of the apply time to delete the object. The caller has the turn, and has it again afterwards.
func (t *Turn) AwaitDeletion(ctx context.Context) (deleted bool) {
	const patience, poll = 2 * time.Second, 50 * time.Millisecond
	for end := time.Now().Add(patience); t.Last != Deleted && ctx.Err() == nil && time.Now().Before(end); {
		t.Unlock()
		_ = pause(ctx, poll) // the loop ends after a cancellation
		t.Lock()
	}
	return t.Last == Deleted
}
