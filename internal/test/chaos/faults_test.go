//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// networkFaults befall all connections of a worker, of the producers or of the consumers.
func (c *chaos) networkFaults() []fault {
	return []fault{
		func(_ <-chan struct{}, rng *rand.Rand) error {
			p := c.somebody(rng)
			c.log.strike("cut", "the connections of %s", p)
			p.cut()
			return nil
		},
		func(over <-chan struct{}, rng *rand.Rand) error {
			p, lasts := c.somebody(rng), between(rng, time.Second, c.longestStall)
			c.log.strike("stall", "the connections of %s for %s", p, lasts)
			p.stall()
			defer p.resume()
			pause(over, lasts)
			return nil
		},
		func(over <-chan struct{}, rng *rand.Rand) error {
			p, lasts, delay := c.somebody(rng), between(rng, 2*time.Second, 8*time.Second), between(rng, 20*time.Millisecond, 300*time.Millisecond)
			c.log.strike("slow", "the connections of %s for %s: %s for each %d bytes", p, lasts, delay, chunk)
			p.slow(delay)
			defer p.slow(0)
			pause(over, lasts)
			return nil
		},
	}
}

// somebody is a worker as often as not.
func (c *chaos) somebody(rng *rand.Rand) *proxy {
	return pick(rng, c.replicas[0].proxy, c.replicas[1].proxy, c.producers, c.consumers)
}

// workerFaults kill a worker in the middle of whatever it does.
func (c *chaos) workerFaults() []fault {
	return []fault{func(over <-chan struct{}, rng *rand.Rand) error {
		r, down := pick(rng, c.replicas...), between(rng, 0, 3*time.Second)
		if err := r.alive(); err != nil {
			return err
		}
		c.log.strike("kill worker", "%s for %s", r, down)
		r.kill()
		pause(over, down)
		return r.start(c.t)
	}}
}

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

const (
	// highWatermark is the broker's default, lowWatermark one that every node is above.
	highWatermark, lowWatermark = "0.6", "0.0000001"
	// applyTimeout is for an apply that proves that a queue is empty, between faults.
	applyTimeout = 3 * time.Minute
)

// operationFaults are what people and the broker do on an ordinary day.
func (c *chaos) operationFaults() []fault {
	return append([]fault{c.alarm, c.change}, c.operations(c)...)
}

// alarm blocks all publishers of the cluster.
func (c *chaos) alarm(over <-chan struct{}, rng *rand.Rand) error {
	n, lasts := pick(rng, c.nodes...), between(rng, time.Second, 6*time.Second)
	if err := n.ctl(c.t.Context(), "set_vm_memory_high_watermark", lowWatermark); err != nil {
		c.log.note("no memory alarm on %s: it is down", n)
		return nil //nolint:nilerr // another fault was there first
	}
	c.log.strike("memory alarm", "on %s for %s", n, lasts)
	pause(over, lasts)
	if err := n.ctl(c.t.Context(), "set_vm_memory_high_watermark", highWatermark); err != nil {
		c.log.note("the memory alarm on %s went with the node", n)
	}
	return nil
}

// change applies the next configuration. What a fault stopped midway is applied again.
func (c *chaos) change(over <-chan struct{}, _ *rand.Rand) error {
	c.log.strike("apply", "%s", c.next())
	err := c.apply()
	for err != nil {
		c.log.note("apply failed, again: %s", firstLines(err))
		if !pause(over, time.Second) {
			return nil
		}
		err = c.apply()
	}
	c.log.note("applied")
	return c.follow(c.config)
}

// apply makes the subject what it is to be.
func (c *chaos) apply() error {
	ctx, cancel := context.WithTimeout(c.t.Context(), applyTimeout)
	defer cancel()
	c.tf.Write(c.t, "main.tf", required+c.hcl())
	if _, err := c.tf.Try(ctx, "apply", "-auto-approve", "-input=false", "-no-color"); err != nil {
		return err
	}
	var err error
	c.config, err = c.tf.Try(ctx, "output", "-raw", "worker")
	return err
}

// follow has the workers use a configuration.
func (c *chaos) follow(config string) error {
	for _, r := range c.replicas {
		if err := r.configure(config); err != nil {
			return err
		}
		if err := r.reload(); err != nil {
			return err
		}
	}
	return nil
}

const required = terraformtest.Required

// firstLines are those of an error of Terraform's that tell what is wrong.
func firstLines(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Trim(line, " │╷╵\n"); line != "" && (len(lines) > 0 || strings.HasPrefix(line, "Error:")) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[:min(len(lines), 8)], " ")
}

// faultLog prints and counts the faults as they happen.
type faultLog struct {
	t     *testing.T
	began time.Time

	mu   sync.Mutex
	kind map[string]int
	all  int
}

// strike enters that something goes wrong.
func (l *faultLog) strike(kind, format string, args ...any) {
	l.mu.Lock()
	l.kind[kind]++
	l.all++
	l.mu.Unlock()
	l.note(kind+" "+format, args...)
}

// note enters what happens besides.
func (l *faultLog) note(format string, args ...any) {
	l.t.Logf(since(l.began, time.Now())+"  "+format, args...)
}

func (l *faultLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// fault makes something go wrong, and fixes it before it returns. It need not last any longer when all
// is over.
type fault func(over <-chan struct{}, rng *rand.Rand) error

// track has one fault at a time. Those of different tracks overlap.
type track struct {
	name          string
	faults        []fault
	shortest, gap time.Duration
}

// run makes the faults of the track happen, each once in every round, until all is over.
func (tr track) run(over <-chan struct{}, rng *rand.Rand) error {
	for {
		for _, i := range rng.Perm(len(tr.faults)) {
			if !pause(over, between(rng, tr.shortest, tr.shortest+tr.gap)) {
				return nil
			}
			if err := tr.faults[i](over, rng); err != nil {
				return err
			}
		}
	}
}

func between(rng *rand.Rand, shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(rng.Int64N(int64(longest-shortest)+1)).Truncate(10*time.Millisecond)
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }
