package broker

import (
	"context"
	"fmt"
	"maps"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// look is what one read of a queue says of its content. Both texts are empty for an empty queue.
type look struct {
	// holds says what is in the queue.
	holds string
	// unknown says why the broker's answer proves nothing.
	unknown string
}

// content judges a read of a queue: all its messages, and the dead letters that it still holds
// because their target did not take them yet (at-least-once), which other counts leave out.
func content(q queueInfo) look {
	switch {
	case q.Messages == nil:
		return look{unknown: "the broker does not report how many messages it holds: does its leader run?"}
	case *q.Messages > 0:
		return look{holds: count(*q.Messages, "message", "messages")}
	}
	return deadLetters(q)
}

// use judges a queue that others publish to: its content, and whether somebody consumes it.
func use(q queueInfo) look {
	seen := content(q)
	switch {
	case seen != look{}:
		return seen
	case q.Consumers == nil:
		return look{unknown: "the broker does not report how many consumers it has"}
	case *q.Consumers > 0:
		return look{holds: count(*q.Consumers, "consumer", "consumers") + ", so it is in use"}
	}
	return look{}
}

// deadLetters judges the held dead letters alone. After a failover counts are missing or old until
// the queue runs with all its members, so anything less proves nothing.
func deadLetters(q queueInfo) look {
	switch {
	case q.State != "running":
		return look{unknown: fmt.Sprintf("its state is %q", q.State)}
	case q.Type != topology.Quorum:
		return look{}
	case q.MessagesDLX == nil:
		return look{unknown: "the broker does not report how many dead letters it holds"}
	case *q.MessagesDLX > 0:
		return look{holds: count(*q.MessagesDLX, "dead letter that its target has", "dead letters that their targets have") + " not taken yet"}
	case len(q.Online) != len(q.Members):
		return look{unknown: fmt.Sprintf("%d of its %d members are online", len(q.Online), len(q.Members))}
	}
	return look{}
}

// passing judges what may be on its way like a broker that does not answer yet: it is looked at again.
// A look that finds nothing proves as much as it does without that: whatever stays is in all of them.
func passing(queues subjects) subjects {
	all := subjects{}
	for queue, judge := range queues {
		all[queue] = func(q queueInfo) look {
			seen := judge(q)
			return look{unknown: seen.holds + seen.unknown}
		}
	}
	return all
}

// lookAt reads a queue and judges it. A queue that does not exist holds nothing.
func (c *Client) lookAt(ctx context.Context, vhost, queue string, judge func(queueInfo) look) (look, error) {
	info, err := c.queue(ctx, vhost, queue)
	if IsNotFound(err) {
		return look{}, nil
	}
	if err != nil {
		return look{}, err
	}
	return judge(info), nil
}

// Drained tells whether one look at the queue found nothing in it. That is no proof: counts lag.
func (c *Client) Drained(ctx context.Context, vhost, queue string) (bool, error) {
	seen, err := c.lookAt(ctx, vhost, queue, content)
	return seen == look{}, err
}

// Holdings says of each queue what it visibly holds, by one look: all its messages, or for those in
// heldIn the dead letters alone. Queues without an entry may hold messages all the same.
func (c *Client) Holdings(ctx context.Context, vhost string, queues, heldIn []string) (map[string]string, error) {
	all := judging(deadLetters, heldIn...)
	maps.Copy(all, judging(content, queues...))
	return c.holdings(ctx, vhost, all)
}

func (c *Client) holdings(ctx context.Context, vhost string, queues subjects) (map[string]string, error) {
	found := map[string]string{}
	for queue, judge := range queues {
		seen, err := c.lookAt(ctx, vhost, queue, judge)
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
