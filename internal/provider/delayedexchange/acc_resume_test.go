package delayedexchange_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// While the exchange that routes what is due is away, a level stands still, and tries again after three minutes. A change of the
// policy has it go on at once when the exchange is back.
func TestAcc_LevelsGoOnAfterAChangeOfPriority(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	const level, messages = "events.delay.1s.0", 3
	config := func(priority int) string {
		return exchangeHCL(b, "events", `max_delay = "1s"`, `precision = "1s"`, fmt.Sprintf("policy_priority = %d", priority))
	}
	accept(t, b, acctest.Quick(),
		resource.TestStep{Config: config(1000)},
		resource.TestStep{
			PreConfig: func() {
				b.Call(t, http.MethodDelete, b.Path("exchanges", "events.deliver"), nil, nil)
				for range messages {
					b.Publish(t, level, "key", amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: amqp.Table{"delay-0": true}})
				}
				pending(t, b, level, messages)
			},
			Config: config(1000),
		},
		resource.TestStep{
			PreConfig: func() { pending(t, b, level, messages) },
			Config:    config(1001),
			Check: func(*terraform.State) error {
				began := time.Now()
				pending(t, b, level, 0)
				t.Logf("all went on within %s", time.Since(began).Round(time.Millisecond))
				b.Call(t, http.MethodDelete, b.Path("queues", "events.delay.unrouted", "contents"), nil, nil)
				return nil
			},
		},
	)
}

// pending waits until so many messages of a queue have expired and are not where they belong.
func pending(t *testing.T, b *brokertest.Broker, queue string, want int) {
	t.Helper()
	brokertest.Eventually(t, time.Minute, func() error {
		var q struct {
			Messages int `json:"messages"`
			Pending  int `json:"messages_dlx"`
		}
		b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &q)
		if q.Messages != want || q.Pending != want {
			return fmt.Errorf("%+v", q)
		}
		return nil
	})
}
