package worker_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest/amqp10"
)

// A broker closes the channel over a reply-to that it would have to replace: what is under way must not come twice.
func TestDirectReplyToAmongMany(t *testing.T) {
	t.Parallel()
	forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
		const messages, every = 1000, 50
		addresses := []string{"amq.rabbitmq.reply-to"}
		if p.VersionAtLeast("4.3") {
			addresses = append(addresses, "/queues/amq.rabbitmq.reply-to")
		}
		sender := client.To(t, "/queues/orders.created")
		for i := range messages {
			m := withID(fmt.Sprint("good-", i))
			if i%every == 0 {
				m.Properties = amqp10.List(amqp10.Text(fmt.Sprint("good-", i)), amqp10.Null, amqp10.Null, amqp10.Null,
					amqp10.Text(addresses[i/every%len(addresses)]))
			}
			sender.Send(t, m.Encode())
		}
		client.Reject(t, "orders.created", messages)

		r := p.work(t)
		c := p.consume(t, "orders.created", func(d amqp.Delivery) error { return d.Ack(false) })
		brokertest.Eventually(t, func() error { return c.has(messages) })
		p.expectSettled(t, r)
		p.expectEmpty(t, p.names.FailedQueue())
		seen := map[string]int{}
		for _, d := range c.deliveries() {
			seen[d.MessageId]++
			i, err := strconv.Atoi(strings.TrimPrefix(d.MessageId, "good-"))
			if want := i%every == 0; err != nil || (d.Headers["retry-reply-to"] == "amq.rabbitmq.reply-to") != want || d.ReplyTo != "" {
				t.Errorf("%q has the reply-to %q and the headers %v", d.MessageId, d.ReplyTo, d.Headers)
			}
		}
		if copies := len(c.deliveries()) - messages; copies != 0 || len(seen) != messages {
			t.Errorf("%d messages came, and %d copies", len(seen), copies)
		}
	})
}
