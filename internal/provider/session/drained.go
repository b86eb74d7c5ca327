package session

import (
	"context"
	"slices"
	"sync"
	"time"
)

// countsServe is how long after the second reading the first one still serves: no longer than one operation.
const countsServe = time.Second

// counts are the latest first readings, by vhost.
type counts struct {
	mutex sync.Mutex
	first map[string]*reading
}

// reading is a first reading of the counts of a vhost.
type reading struct {
	once   sync.Once
	filled map[string]bool
	err    error
	// second is when the second reading can be made.
	second time.Time
}

// Drained says of each queue whether two readings find nothing in it. Counts lag: the second reading is made when what was
// published before the first one is counted. All who call meanwhile, or within a second after it, share the first reading and
// the wait.
func (s *Session) Drained(ctx context.Context, vhost string, queues ...string) (map[string]bool, error) {
	drained := map[string]bool{}
	if len(queues) == 0 {
		return drained, nil
	}
	first, err := s.firstReading(ctx, vhost)
	if err != nil {
		return nil, err
	}
	for _, queue := range queues {
		if first.filled[queue] {
			continue
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Until(first.second)):
		}
		if drained[queue], err = s.Applier.LooksEmpty(ctx, vhost, queue); err != nil {
			return nil, err
		}
	}
	return drained, nil
}

// AllDrained reports whether all of the queues are drained. If the first reading finds something in one, there is no second one.
func (s *Session) AllDrained(ctx context.Context, vhost string, queues ...string) (bool, error) {
	first, err := s.firstReading(ctx, vhost)
	if err != nil || slices.ContainsFunc(queues, func(queue string) bool { return first.filled[queue] }) {
		return false, err
	}
	drained, err := s.Drained(ctx, vhost, queues...)
	return err == nil && !slices.ContainsFunc(queues, func(queue string) bool { return !drained[queue] }), err
}

func (s *Session) firstReading(ctx context.Context, vhost string) (*reading, error) {
	s.counts.mutex.Lock()
	first := s.counts.first[vhost]
	if first == nil || time.Since(first.second) > countsServe {
		first = &reading{second: time.Now().Add(s.Applier.Lag())}
		s.counts.first[vhost] = first
	}
	s.counts.mutex.Unlock()
	// A caller that gives up does not end what others wait for.
	first.once.Do(func() { first.filled, first.err = s.Applier.Filled(context.WithoutCancel(ctx), vhost) })
	return first, first.err
}
