package apply

import (
	"context"
	"fmt"
	"maps"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// inspection is what one read of a queue says of its content. Both texts are empty for an empty queue.
type inspection struct {
	// holds says what is in the queue.
	holds string
	// unknown says why the broker's answer proves nothing.
	unknown string
}

// contents judges a read of a queue: all its messages, and the dead letters that it still holds
// because their target did not take them yet (at-least-once), which other counts leave out.
func contents(q broker.QueueInfo) inspection {
	switch {
	case q.Messages == nil:
		return inspection{unknown: "the broker does not report how many messages it holds: does its leader run?"}
	case *q.Messages > 0:
		return inspection{holds: count(*q.Messages, "message", "messages")}
	}
	return pendingDeadLetters(q)
}

// use judges a queue that others publish to: its contents, and whether somebody consumes it.
func use(q broker.QueueInfo) inspection {
	seen := contents(q)
	switch {
	case seen != inspection{}:
		return seen
	case q.Consumers == nil:
		return inspection{unknown: "the broker does not report how many consumers it has"}
	case *q.Consumers > 0:
		return inspection{holds: count(*q.Consumers, "consumer", "consumers") + ", so it is in use"}
	}
	return inspection{}
}

// pendingDeadLetters judges the held dead letters alone. After a failover counts are missing or old until
// the queue runs with all its members, so anything less proves nothing.
func pendingDeadLetters(q broker.QueueInfo) inspection {
	switch {
	case q.State != "running":
		return inspection{unknown: fmt.Sprintf("its state is %q", q.State)}
	case q.Type != topology.Quorum:
		return inspection{}
	case q.MessagesDLX == nil:
		return inspection{unknown: "the broker does not report how many dead letters it holds"}
	case *q.MessagesDLX > 0:
		return inspection{holds: count(*q.MessagesDLX, "dead letter that its target has", "dead letters that their targets have") + " not taken yet"}
	case len(q.Online) != len(q.Members):
		return inspection{unknown: fmt.Sprintf("%d of its %d members are online", len(q.Online), len(q.Members))}
	}
	return inspection{}
}

// passing judges what may be on its way like a broker that does not answer yet: it is looked at again.
// A look that finds nothing proves as much as it does without that: whatever stays is in all of them.
func passing(queues emptinessChecks) emptinessChecks {
	all := emptinessChecks{}
	for queue, judge := range queues {
		all[queue] = func(q broker.QueueInfo) inspection {
			seen := judge(q)
			return inspection{unknown: seen.holds + seen.unknown}
		}
	}
	return all
}

// inspectQueue reads a queue and judges it. A queue that does not exist holds nothing.
func (a *Applier) inspectQueue(ctx context.Context, vhost, queue string, judge func(broker.QueueInfo) inspection) (inspection, error) {
	info, err := a.client.Queue(ctx, vhost, queue)
	if broker.IsNotFound(err) {
		return inspection{}, nil
	}
	if err != nil {
		return inspection{}, err
	}
	return judge(info), nil
}

// LooksEmpty reports whether one inspection of the queue found nothing in it. That is no proof:
// counts lag.
func (a *Applier) LooksEmpty(ctx context.Context, vhost, queue string) (bool, error) {
	seen, err := a.inspectQueue(ctx, vhost, queue, contents)
	return seen == inspection{}, err
}

// Contents says of each queue what is visibly in it, by one inspection: all its messages, or for
// those in pendingIn the pending dead letters alone. Queues without an entry may hold messages all
// the same.
func (a *Applier) Contents(ctx context.Context, vhost string, queues, pendingIn []string) (map[string]string, error) {
	all := checksOf(pendingDeadLetters, pendingIn...)
	maps.Copy(all, checksOf(contents, queues...))
	return a.visible(ctx, vhost, all)
}

// visible says of each queue what one inspection finds in it.
func (a *Applier) visible(ctx context.Context, vhost string, queues emptinessChecks) (map[string]string, error) {
	found := map[string]string{}
	for queue, judge := range queues {
		seen, err := a.inspectQueue(ctx, vhost, queue, judge)
		if err != nil {
			return nil, err
		}
		if seen.holds != "" {
			found[queue] = seen.holds
		}
	}
	return found, nil
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
