package broker

import (
	"context"
	"time"
)

// The proof that queues are empty. A queue's counts lag behind: a message that was just published,
// or a dead letter that was just refused, was seen to be missing from them for up to 9 seconds.
const (
	// settleTime passes after the last binding was removed, so that what was on its way is counted.
	settleTime = 10 * time.Second
	// staleTime is how long a queue that was emptied, by a consumer or a purge, may be reported to hold
	// what is gone already, on a busy broker. Such a report can follow one that said it was empty.
	staleTime = 15 * time.Second
	// betweenLooks passes between two looks that both have to find nothing.
	betweenLooks = 12 * time.Second
	// reportTime is how long a broker may take to report on a queue; a young one has no counts yet.
	reportTime   = 60 * time.Second
	reportPeriod = time.Second
)

// subjects are the queues of a proof, each with what to judge of it.
type subjects map[string]func(queueInfo) look

func judging(judge func(queueInfo) look, queues ...string) subjects {
	all := subjects{}
	for _, queue := range queues {
		all[queue] = judge
	}
	return all
}

// settleAndProve waits until what was on its way is counted, and then looks at the queues twice. It
// returns what speaks against each of them being empty; a queue without an entry is proved to be.
// With allOrNone, the first message that is seen while waiting ends it.
func (c *Client) settleAndProve(ctx context.Context, vhost string, queues subjects, allOrNone bool) (map[string]string, error) {
	for end := time.Now().Add(settleTime); time.Now().Before(end); {
		if err := pause(ctx, settleTime/5); err != nil {
			return nil, err
		}
		found, err := c.holdings(ctx, vhost, queues)
		if err != nil || (allOrNone && len(found) > 0) {
			return found, err
		}
	}
	return c.proveEmpty(ctx, vhost, queues)
}

// proveEmpty looks at the queues twice and returns what speaks against each of them being empty.
func (c *Client) proveEmpty(ctx context.Context, vhost string, queues subjects) (map[string]string, error) {
	against := map[string]string{}
	for round := range 2 {
		if round > 0 {
			if err := pause(ctx, betweenLooks); err != nil {
				return nil, err
			}
		}
		deadline := time.Now().Add(reportTime)
		for queue, judge := range queues {
			if against[queue] != "" {
				continue
			}
			seen, err := c.awaitReport(ctx, vhost, queue, judge, deadline)
			if err != nil {
				return nil, err
			}
			if seen != (look{}) {
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
func (c *Client) awaitReport(ctx context.Context, vhost, queue string, judge func(queueInfo) look, deadline time.Time) (look, error) {
	for {
		seen, err := c.lookAt(ctx, vhost, queue, judge)
		if err != nil || seen.unknown == "" || time.Now().After(deadline) {
			return seen, err
		}
		if err := pause(ctx, reportPeriod); err != nil {
			return look{}, err
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
