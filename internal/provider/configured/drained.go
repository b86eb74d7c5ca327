package configured

import (
	"context"
	"slices"
	"sync"
	"time"
)

// counts are two readings of a vhost's queues. They serve one operation.
type counts struct {
	first, second reading
	// begun is when the first reading began.
	begun time.Time
}

// reading has the queues that have messages.
type reading struct {
	once   sync.Once
	filled map[string]bool
	err    error
}

// Drained reports for each queue whether two readings find no message. The broker's counts lag, so the second reading waits
// until messages published before the first one are counted. All calls of an operation share both readings and the wait.
func (s *Provider) Drained(ctx context.Context, vhost string, queues ...string) (map[string]bool, error) {
	return s.drained(ctx, vhost, queues, false)
}

// AllDrained reports whether all of the queues are drained. If the first reading finds a message, there is no second one.
func (s *Provider) AllDrained(ctx context.Context, vhost string, queues ...string) (bool, error) {
	drained, err := s.drained(ctx, vhost, queues, true)
	return err == nil && !slices.ContainsFunc(queues, func(queue string) bool { return !drained[queue] }), err
}

func (s *Provider) drained(ctx context.Context, vhost string, queues []string, all bool) (map[string]bool, error) {
	drained := map[string]bool{}
	if len(queues) == 0 {
		return drained, nil
	}
	c := s.countsOf(vhost)
	first, err := c.first.read(ctx, vhost, s.Applier.Filled)
	looksEmpty := slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return first[queue] })
	if err != nil || len(looksEmpty) == 0 || all && len(looksEmpty) < len(queues) {
		return drained, err
	}
	if err := pause(ctx, time.Until(c.begun.Add(s.Applier.Times().Lag))); err != nil {
		return nil, err
	}
	second, err := c.second.read(ctx, vhost, s.Applier.Counted)
	if err != nil {
		return nil, err
	}
	for _, queue := range looksEmpty {
		if second[queue] {
			continue
		}
		if drained[queue], err = s.Applier.LooksEmpty(ctx, vhost, queue); err != nil {
			return nil, err
		}
	}
	return drained, nil
}

// read reads once. If a caller is cancelled, the reading continues for the others.
func (r *reading) read(
	ctx context.Context, vhost string, ask func(ctx context.Context, vhost string) (map[string]bool, error),
) (map[string]bool, error) {
	r.once.Do(func() { r.filled, r.err = ask(context.WithoutCancel(ctx), vhost) })
	return r.filled, r.err
}

func (s *Provider) countsOf(vhost string) *counts {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.operation.counts[vhost] == nil {
		s.operation.counts[vhost] = &counts{begun: time.Now()}
	}
	return s.operation.counts[vhost]
}
