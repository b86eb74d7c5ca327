package worker_test

import (
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// undeliverableOfPlugin are messages that RabbitMQ 3 takes over AMQP 1.0 and cannot deliver over AMQP 0-9-1, by what
// dead-letter-error says of them.
func undeliverableOfPlugin() map[string]amqp10.Message {
	long, number := strings.Repeat("x", 300), amqp10.Fixed(0x80, 0, 0, 0, 0, 0, 0, 0, 7)
	messages := map[string]amqp10.Message{}
	for change, fields := range map[string]map[int]amqp10.Value{
		`property "message-id": no text, written as text`:       {0: number},
		`property "correlation-id": no text, written as text`:   {5: amqp10.Fixed(0x53, 8)},
		`property "message-id": 300 bytes, left out: "xxx`:      {0: amqp10.Text(long)},
		`property "reply-to": 300 bytes, left out: "xxx`:        {4: amqp10.Text(long)},
		`property "content-type": 300 bytes, left out: "xxx`:    {6: amqp10.Symbol(long)},
		`property "content-encoding": no text, written as text`: {7: amqp10.Fixed(0x70, 0, 0, 0, 9)},
		`property "creation-time": no time, left out`:           {9: amqp10.Text("noon")},
		`property "correlation-id": no text, left out`:          {5: amqp10.Fixed(0x82, 0, 0, 0, 0, 0, 0, 0, 1)},
		`application property "k": a UUID, written as text`:     {},
	} {
		properties := []amqp10.Value{}
		for i := range 10 {
			properties = append(properties, amqp10.Null)
			if value, ok := fields[i]; ok {
				properties[i] = value
			}
		}
		m := amqp10.Message{Properties: amqp10.List(properties...), Data: []byte(change)}
		if len(fields) == 0 {
			m.Properties = amqp10.List(number)
			m.ApplicationProperties = amqp10.Map(amqp10.Text("k"), amqp10.UUID())
		}
		messages[change] = m
	}
	return messages
}

// The plugin rabbitmq_amqp1_0 lets messages in over which the broker closes each connection of AMQP 0-9-1.
func TestUndeliverableMessagesOfThePluginAreParked(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{topology.Quorum, topology.Classic} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			p := newPipelineOf(t, newSpec(queueType, []string{"100ms"}, 3, "orders.created"))
			if p.VersionAtLeast("4.0") || !amqp10.Speaks(t, p.Broker) {
				t.Skipf("RabbitMQ %s without the plugin", p.Version)
			}
			client := amqp10.Dial(t, p.Broker)
			sender := client.To(t, client.Queue("orders.created"))
			bad := undeliverableOfPlugin()
			for _, m := range bad {
				sender.Send(t, m.Encode())
				// What the plugin leaves to those who read it: 0-9-1 has bytes for it.
				sender.Send(t, withUUID("good").Encode())
			}
			client.Reject(t, "orders.created", 2*len(bad))
			user, password := p.User(t, "", "^$", `^orders\.(retry|return|failed(\.route)?)$|^amq\.default$`, `^orders\.inbox$`)
			r := p.workAs(t, withUser(t, p.URI, user, password), p.spec.Worker())
			c := p.consume(t, "orders.created", func(d amqp.Delivery) error { return d.Ack(false) })
			brokertest.Eventually(t, func() error {
				if n := len(c.deliveries()); n < len(bad) {
					return fmt.Errorf("%d of %d messages retried", n, len(bad))
				}
				return nil
			})
			for range bad {
				d := p.awaitFailed(t, "malformed")
				if text, _ := d.Headers["dead-letter-error"].(string); !strings.Contains(text, string(d.Body)) {
					t.Errorf("%q is parked with dead-letter-error %q", d.Body, text)
				}
				if change := string(d.Body); strings.Contains(change, "written as text") && d.MessageId+d.CorrelationId+d.ContentEncoding == "" {
					t.Errorf("%q is lost", change)
				}
			}
			p.expectEmpty(t, p.names.FailedQueue())
			brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
			if n := len(c.deliveries()); n != len(bad) {
				t.Errorf("%d messages retried, want %d", n, len(bad))
			}
			t.Logf("%d sessions", r.Log.Count("msg=consuming"))
		})
	}
}
