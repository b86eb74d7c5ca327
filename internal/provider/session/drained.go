package session

import (
	"context"
	"slices"
	"sync"
	"time"
)

// reading is a first reading of the counts of a vhost. It serves one operation.
type reading struct {
	once   sync.Once
	filled map[string]bool
	err    error
	// second is when the second reading can be made.
	second time.Time
}

// Drained says of each queue whether two readings find nothing in it. Counts lag: the second reading is made when what was
// published before the first one is counted. All calls of an operation share the first reading, and so the wait.
func (s *Session) Drained(ctx context.Context, vhost string, queues ...string) (map[string]bool, error) {
	return s.drained(ctx, vhost, queues, false)
}

// AllDrained reports whether all of the queues are drained. If the first reading finds something in one, there is no second one.
func (s *Session) AllDrained(ctx context.Context, vhost string, queues ...string) (bool, error) {
	drained, err := s.drained(ctx, vhost, queues, true)
	return err == nil && !slices.ContainsFunc(queues, func(queue string) bool { return !drained[queue] }), err
}

func (s *Session) drained(ctx context.Context, vhost string, queues []string, all bool) (map[string]bool, error) {
	drained := map[string]bool{}
	if len(queues) == 0 {
		return drained, nil
	}
	first := s.firstReading(vhost)
	// A caller that gives up does not end what others wait for.
	first.once.Do(func() { first.filled, first.err = s.Applier.Filled(context.WithoutCancel(ctx), vhost) })
	looksEmpty := slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return first.filled[queue] })
	if first.err != nil || all && len(looksEmpty) < len(queues) {
		return drained, first.err
	}
	for _, queue := range looksEmpty {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Until(first.second)):
		}
		var err error
		if drained[queue], err = s.Applier.LooksEmpty(ctx, vhost, queue); err != nil {
			return nil, err
		}
	}
	return drained, nil
}

func (s *Session) firstReading(vhost string) *reading {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	first := s.operation.counts[vhost]
	if first == nil {
		first = &reading{second: time.Now().Add(s.Applier.Lag())}
		s.operation.counts[vhost] = first
	}
	return first
}
