//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// nodeFaults take one node at a time away, never the majority of a queue's members.
func (c *chaos) nodeFaults() []fault {
	return []fault{
		func(over <-chan struct{}, rng *rand.Rand) error {
			return c.killNode(over, rng, pick(rng, c.nodes...), "some node")
		},
		c.stopNode,
		func(over <-chan struct{}, rng *rand.Rand) error { return c.killLeader(over, rng, "chaos.inbox") },
		func(over <-chan struct{}, rng *rand.Rand) error {
			return c.killLeader(over, rng, pick(rng, workQueues...))
		},
	}
}

func (c *chaos) killNode(over <-chan struct{}, rng *rand.Rand, n *node, why string) error {
	down := between(rng, time.Second, 8*time.Second)
	c.log.strike("kill node", "%d, %s, for %s", n.number, why, down)
	if err := n.kill(); err != nil {
		return err
	}
	return c.bringBack(over, n, down)
}

func (c *chaos) killLeader(over <-chan struct{}, rng *rand.Rand, name string) error {
	n, err := c.leader(c.t.Context(), name)
	if err != nil {
		return err
	}
	return c.killNode(over, rng, n, "leader of "+name)
}

func (c *chaos) stopNode(over <-chan struct{}, rng *rand.Rand) error {
	n, down := pick(rng, c.nodes...), between(rng, time.Second, 8*time.Second)
	c.log.strike("stop node", "%d for %s", n.number, down)
	if err := n.ctl(c.t.Context(), "stop"); err != nil {
		return err
	}
	return c.bringBack(over, n, down)
}

// bringBack returns when the node could be missed again.
func (c *chaos) bringBack(over <-chan struct{}, n *node, down time.Duration) error {
	pause(over, down)
	if err := n.start(); err != nil {
		return err
	}
	if err := c.awaitMembers(c.t.Context()); err != nil {
		return fmt.Errorf("%s did not come back: %w", n, err)
	}
	c.log.note("%s is back", n)
	return nil
}

func (a *application) leader(ctx context.Context, name string) (*node, error) {
	queues, err := a.queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		for _, n := range a.nodes {
			if q.Name == name && strings.HasSuffix(q.Leader, fmt.Sprintf("-%d@localhost", n.number)) {
				return n, nil
			}
		}
	}
	return nil, fmt.Errorf("nobody knows the leader of %s", name)
}
