package apply

import (
	"context"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
)

// emptinessChecks are the queues of a proof, each with what to judge of it.
type emptinessChecks map[string]func(broker.QueueInfo) inspection

func checksOf(judge func(broker.QueueInfo) inspection, queues ...string) emptinessChecks {
	all := emptinessChecks{}
	for _, queue := range queues {
		all[queue] = judge
	}
	return all
}

// settleAndProve waits until what was on its way is counted, and then looks at the queues twice. It
// returns what speaks against each of them being empty; a queue without an entry is proved to be.
// With allOrNone, the first message that is seen while waiting ends it.
func (a *Applier) settleAndProve(ctx context.Context, vhost string, queues emptinessChecks, allOrNone bool) (map[string]string, error) {
	for end := time.Now().Add(a.times.Settle); time.Now().Before(end); {
		if err := pause(ctx, a.times.Settle/5); err != nil {
			return nil, err
		}
		found, err := a.visible(ctx, vhost, queues)
		if err != nil || (allOrNone && len(found) > 0) {
			return found, err
		}
	}
	return a.proveEmpty(ctx, vhost, queues)
}

// proveEmpty looks at the queues twice and returns what speaks against each of them being empty.
func (a *Applier) proveEmpty(ctx context.Context, vhost string, queues emptinessChecks) (map[string]string, error) {
	against := map[string]string{}
	for round := range 2 {
		if round > 0 {
			if err := pause(ctx, a.times.Between); err != nil {
				return nil, err
			}
		}
		deadline := time.Now().Add(a.times.Report)
		for queue, judge := range queues {
			if against[queue] != "" {
				continue
			}
			seen, err := a.awaitReport(ctx, vhost, queue, judge, deadline)
			if err != nil {
				return nil, err
			}
			if seen != (inspection{}) {
				against[queue] = seen.holds + seen.unknown
			}
		}
		if len(against) == len(queues) {
			break
		}
	}
	return against, nil
}

// awaitReport looks at a queue until the broker's answer says something.
func (a *Applier) awaitReport(ctx context.Context, vhost, queue string, judge func(broker.QueueInfo) inspection, deadline time.Time) (inspection, error) {
	for {
		seen, err := a.inspectQueue(ctx, vhost, queue, judge)
		if err != nil || seen.unknown == "" || time.Now().After(deadline) {
			return seen, err
		}
		if err := pause(ctx, a.times.Poll); err != nil {
			return inspection{}, err
		}
	}
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}
