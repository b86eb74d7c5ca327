//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"
)

// nodeFaults take one node at a time away, never the majority of a queue's members.
func (c *chaos) nodeFaults() []fault {
	faults := []fault{
		func(over <-chan struct{}, rng *rand.Rand) error {
			return c.killNode(over, rng, pick(rng, c.nodes...), "some node")
		},
		c.stopNode,
		c.isolateNode,
	}
	for _, pattern := range c.vital() {
		queues := regexp.MustCompile(pattern)
		faults = append(faults, func(over <-chan struct{}, rng *rand.Rand) error { return c.killLeader(over, rng, queues) })
	}
	return faults
}

func (c *chaos) killNode(over <-chan struct{}, rng *rand.Rand, n *node, why string) error {
	down := between(rng, time.Second, 8*time.Second)
	c.log.strike("kill node", "%d, %s, for %s", n.number, why, down)
	if err := n.kill(); err != nil {
		return err
	}
	return c.bringBack(over, n, down)
}

// killLeader kills the leader of one of the queues with such a name.
func (c *chaos) killLeader(over <-chan struct{}, rng *rand.Rand, names *regexp.Regexp) error {
	queues, err := c.queues(c.t.Context())
	if err != nil {
		return err
	}
	queues = slices.DeleteFunc(queues, func(q queue) bool { return !names.MatchString(q.Name) || q.Leader == "" })
	if len(queues) == 0 {
		return fmt.Errorf("there is no queue with such a name and a leader: %s", names)
	}
	name := pick(rng, queues...).Name
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

// A node with another cookie for the others can neither reach them nor be reached.
const (
	cutLinks  = `persistent_term:put(cut, nodes()), [{erlang:set_cookie(Node, cut), erlang:disconnect_node(Node)} || Node <- nodes()].`
	mendLinks = `[{erlang:set_cookie(Node, erlang:get_cookie()), net_kernel:connect_node(Node)} || Node <- persistent_term:get(cut)].`
)

// isolateNode cuts a node's links to the other nodes. Its clients and the management API still reach it.
func (c *chaos) isolateNode(over <-chan struct{}, rng *rand.Rand) error {
	n, lasts := pick(rng, c.nodes...), between(rng, time.Second, 8*time.Second)
	c.log.strike("isolate node", "%d for %s", n.number, lasts)
	if err := n.ctl(c.t.Context(), "eval", cutLinks); err != nil {
		return err
	}
	pause(over, lasts)
	if err := n.ctl(c.t.Context(), "eval", mendLinks); err != nil {
		return err
	}
	return c.awaitBack(n)
}

// bringBack returns when the node could be missed again.
func (c *chaos) bringBack(over <-chan struct{}, n *node, down time.Duration) error {
	pause(over, down)
	if err := n.start(); err != nil {
		return err
	}
	return c.awaitBack(n)
}

func (c *chaos) awaitBack(n *node) error {
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
