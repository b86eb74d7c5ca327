//go:build chaos

package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// forgetMembers is the first half of the deletion of a queue. A node that dies in the middle of one leaves a
// queue that is there by name only: the broker routes to it, and refuses all messages.
const forgetMembers = `{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)), {Name, _} = amqqueue:get_pid(Q),
Nodes = case maps:get(nodes, amqqueue:get_type_state(Q)) of Uids when is_map(Uids) -> maps:keys(Uids); List -> List end,
{ok, _} = ra:delete_cluster([{Name, Node} || Node <- Nodes], 5000).`

// TestDelayWithoutMembers has one of three delays reject everything for a while, and then does what the guide
// says.
//
//nolint:paralleltest // the faults of other tests are not for this one
func TestDelayWithoutMembers(t *testing.T) {
	c := newChaos(t, "worker")
	worker := c.replicas[0]
	require.NoError(t, c.nodes[0].ctl(t.Context(), "eval", fmt.Sprintf(forgetMembers, c.Vhost, "chaos.retry.1s")))
	stopConsumers := c.startConsumers(t)
	stopProducers := c.startProducers(t, 50)
	var open []int
	for range 10 {
		pause(t.Context().Done(), 10*time.Second)
		_, left := c.ledger.sent()
		open = append(open, left)
	}
	t.Logf("RabbitMQ %s: messages on their way every ten seconds: %d", c.Version, open)
	stopProducers()
	stopCollecting := c.startCollecting(t)
	brokertest.Eventually(t, func() error {
		if _, left := c.ledger.sent(); left > 0 {
			return fmt.Errorf("%d messages have not come to an end:\n%s", left, worker.end())
		}
		return nil
	})
	stopCollecting()
	if n := worker.count("messages take another delay"); n != 1 {
		t.Errorf("%d lines about the delay, want 1:\n%s", n, worker.end())
	}

	require.NoError(t, c.nodes[1].ctl(t.Context(), "delete_queue", "--vhost", c.Vhost, "chaos.retry.1s"))
	c.checkTerraform(t)
	stopProducers = c.startProducers(t, 5)
	brokertest.Eventually(t, func() error {
		if worker.count("accepts messages again") == 0 {
			return fmt.Errorf("the delay is not used again:\n%s", worker.end())
		}
		return nil
	})
	stopProducers()
	c.drain(t, 15*time.Second, time.Minute)
	stopConsumers()
	c.report(t)
}

// dropOthers leaves the node that evaluates it as the only one with a member of the queue.
const dropOthers = `[ok = rabbit_quorum_queue:delete_member(<<"%s">>, <<"%s">>, Node) || Node <- nodes()].`

// TestDelayOnAFrozenNode has one of three delays answer nothing for a while: its queue has a single member,
// on a node that freezes.
//
//nolint:paralleltest // the faults of other tests are not for this one
func TestDelayOnAFrozenNode(t *testing.T) {
	c := newChaos(t, "worker")
	worker := c.replicas[0]
	frozen, err := c.leader(t.Context(), "chaos.retry.1s")
	require.NoError(t, err)
	c.avoid(frozen)
	require.NoError(t, frozen.ctl(t.Context(), "eval", fmt.Sprintf(dropOthers, c.Vhost, "chaos.retry.1s")))

	stopConsumers := c.startConsumers(t)
	stopProducers := c.startProducers(t, 50)
	pause(t.Context().Done(), 5*time.Second)
	require.NoError(t, frozen.freeze())
	t.Cleanup(func() { _ = frozen.thaw() })
	brokertest.Eventually(t, func() error {
		if worker.count("messages take another delay") == 0 {
			return fmt.Errorf("no detour:\n%s", worker.end())
		}
		return nil
	})
	pause(t.Context().Done(), 10*time.Second)
	before := c.ledger.balance()
	pause(t.Context().Done(), 10*time.Second)
	after := c.ledger.balance()
	t.Logf("RabbitMQ %s: processed within ten seconds of the detour: %d", c.Version, after.processed-before.processed)
	if after.processed-before.processed < 400 {
		t.Errorf("the other delays stand still:\n%s", worker.end())
	}
	require.NoError(t, frozen.thaw())
	stopProducers()
	c.drain(t, 15*time.Second, 3*time.Minute)
	stopConsumers()
	c.report(t)
}

// avoid has no connection lead to the node any more.
func (c *chaos) avoid(n *node) {
	var amqp, management []string
	for _, other := range c.nodes {
		if other != n {
			amqp, management = append(amqp, other.amqp), append(management, other.management)
		}
	}
	c.management.lead(management...)
	for _, p := range []*proxy{c.producers, c.consumers} {
		p.lead(amqp...)
	}
	for _, r := range c.replicas {
		r.proxy.lead(amqp...)
	}
}
