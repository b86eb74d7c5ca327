//go:build load

package worker_test

import (
	"errors"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// A message that asks for a minute and a half is back in time, with a schedule whose longest delay is half a minute.
func TestLoadRetryAfter(t *testing.T) {
	t.Parallel()
	const wait = 90 * time.Second
	p := newPipeline(t, "orders", []string{"5s", "30s"}, 2, "orders.created")
	r := p.work(t)
	asked := time.Now()
	p.Publish(t, "orders.dlx", "", retryAfter(wait))
	var got amqp.Delivery
	brokertest.Eventually(t, func() (err error) {
		d, ok := p.Get(t, "orders.created")
		if got = d; !ok {
			err = errors.New("it is not back")
		}
		return err
	})
	took := time.Since(asked)
	t.Logf("RabbitMQ %s: back after %s", p.Version, took)
	if took < wait || took > wait+6*time.Second {
		t.Errorf("want %s, and 6 s more at most", wait)
	}
	if got.Headers["retry-count"] != int64(1) || got.Headers["retry-delay-ms"] != wait.Milliseconds() {
		t.Errorf("headers %v", got.Headers)
	}
	r.awaitSeries(t, map[string]float64{"messages_received_total": 3, "messages_retried_total{delay=30s}": 3, "messages_retried_total{delay=5s}": 0})
}

func TestLoadRetryAfterOfKilledWorkers(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"5s", "30s"}, 2, "orders.created")
	p.killWorkers(t, 1000, 90*time.Second, 2*time.Second)
}
