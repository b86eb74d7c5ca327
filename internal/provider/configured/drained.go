package configured

import (
	"context"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
)

// reading has the queues that have messages.
type reading struct {
	begun  time.Time
	filled map[string]apply.Inspection
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
	first, err := s.read(ctx, "first reading "+vhost, vhost, s.Applier.Filled)
	looksEmpty := slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return first.filled[queue] != apply.Inspection{} })
	if err != nil || len(looksEmpty) == 0 || all && len(looksEmpty) < len(queues) {
		return drained, err
	}
	if err := pause(ctx, time.Until(first.begun.Add(s.Applier.Times().Lag))); err != nil {
		return nil, err
	}
	second, err := s.read(ctx, "second reading "+vhost, vhost, s.Applier.Counted)
	if err != nil {
		return nil, err
	}
	for _, queue := range looksEmpty {
		if second.filled[queue] != (apply.Inspection{}) {
			continue
		}
		seen, err := s.Applier.Inspect(ctx, vhost, queue)
		if err != nil {
			return nil, err
		}
		drained[queue] = seen == apply.Inspection{}
	}
	return drained, nil
}

// read reads once. If a caller is cancelled, the reading continues for the others.
func (s *Provider) read(
	ctx context.Context, name, vhost string, ask func(ctx context.Context, vhost string) (map[string]apply.Inspection, error),
) (reading, error) {
	return Once(ctx, s, name, func(ctx context.Context) (reading, error) {
		begun := time.Now()
		filled, err := ask(context.WithoutCancel(ctx), vhost)
		return reading{begun, filled}, err
	})
}
