package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// Whatever looks at the failed queue, and whatever acts on its first messages, leaves the others in their order.
func TestLooksKeepTheOrder(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		o := newOrders(t, queueType)
		const messages = 300
		var ids []string
		for i := range messages {
			ids = append(ids, fmt.Sprintf("order-%03d", i))
			o.park(t, "exhausted", ids[i])
		}
		out, _ := o.run(t, exitOK, "failed list orders -o id")
		hashes := strings.Fields(out)
		require.Len(t, hashes, messages)
		for _, command := range []string{
			"failed list orders", "failed list orders --messages", "failed show orders " + hashes[9], "status orders --look",
			"failed list orders --scan 10", "failed show orders " + hashes[0], "failed replay orders --all --dry-run",
			"failed export orders", "failed list orders -o id",
		} {
			code := exitOK
			if strings.HasPrefix(command, "status") {
				code = exitFound // no worker runs
			}
			out, _ = o.run(t, code, command)
		}
		require.Equal(t, hashes, strings.Fields(out))
		o.run(t, exitOK, "failed replay orders --all --yes")
		for _, id := range ids {
			d, _ := o.Get(t, "orders.created")
			require.Equal(t, id, d.MessageId)
		}
	})
}

// Looks at another team's queue take its first messages alone, and keep their order, too.
func TestLooksAtOthersKeepTheOrder(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	const queue, messages = "billing_error", 150
	o.DeclareQueue(t, queue, "quorum", nil)
	for i := range messages {
		o.Publish(t, "", queue, parked("exhausted", fmt.Sprint(i)))
	}
	for _, command := range []string{"failed list --queue ", "failed list -o id --queue ", "failed delete --message-id 0 --discard --yes --queue "} {
		o.run(t, exitOK, command+queue)
	}
	o.holds(t, queue, messages-1)
	for i := range messages - 1 {
		d, _ := o.Get(t, queue)
		require.Equal(t, fmt.Sprint(i+1), d.MessageId)
	}
}
