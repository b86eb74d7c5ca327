package delayedexchange_test

import (
	"net/http"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Publishers of a delayed exchange that is destroyed learn that it is gone, and a destroy that is refused brings it back with
// others' bindings.
func TestAccEveryRelease_NothingIsConfirmedAndDroppedByADestroy(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	for name, refused := range map[string]bool{"destroyed": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			published := 0
			endpoint := b.Before(t, func(r *http.Request) {
				if r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/q/events.delay.unrouted") || published > 0 {
					return
				}
				published++
				if confirmed(t, b, "events") {
					t.Error("a message was confirmed when no queue could get it")
				}
				if refused {
					confirmed(t, b, "", "events.delay.unrouted")
				}
			})
			core := eventsCore(b, map[string]any{"max_delay": "1s"})
			core.Endpoint = endpoint
			core.MustApply(t)
			b.Request(t, http.MethodPut, b.Path("exchanges", "tap"), map[string]any{"type": "fanout", "durable": true})
			b.Request(t, http.MethodPost, b.Path("bindings", "e", "events", "e", "tap"), map[string]any{"routing_key": "key"})
			before := acctest.List(t, b)
			err := core.Destroy(t.Context())
			if published == 0 {
				t.Fatal("the unrouted queue was never unbound")
			}
			if (err != nil) != refused {
				t.Fatalf("the destroy: %v", err)
			}
			if !refused {
				return
			}
			require.NoError(t, before.RequireSame(acctest.List(t, b)))
			if !confirmed(t, b, "events") {
				t.Error("the exchange is not back")
			}
		})
	}
}

// confirmed reports whether the broker has confirmed a message to an exchange, or else closed the channel.
func confirmed(t *testing.T, b *brokertest.Broker, exchange string, key ...string) bool {
	t.Helper()
	ch := b.Channel(t)
	require.NoError(t, ch.Confirm(false))
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	answer, err := ch.PublishWithDeferredConfirm(exchange, strings.Join(key, ""), false, false, amqp.Publishing{DeliveryMode: amqp.Persistent})
	require.NoError(t, err)
	select {
	case reason := <-closed:
		t.Log(reason)
		return false
	case <-answer.Done():
		return answer.Acked()
	case <-t.Context().Done():
		return false
	}
}
