package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

func TestBlockedWorkerStopsAtOnceWhenNothingIsInFlight(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	x := &proxy{}
	r := p.workAs(t, p.throughProxy(t, x), p.spec.Worker())
	await := func(part string) {
		t.Helper()
		brokertest.Eventually(t, patience, func() error {
			if countLines(r.log.String(), part) == 0 {
				return fmt.Errorf("no %q:\n%s", part, r.log)
			}
			return nil
		})
	}
	await("msg=consuming")
	x.block()
	await("the broker accepts no messages")
	// Delivered, but not taken as long as the broker blocks.
	p.fillInbox(t, 10, mixed)
	began := time.Now()
	r.stop(t)
	if took := time.Since(began); took > 20*time.Second || r.err != nil {
		t.Errorf("stopped after %s: %v", took, r.err)
	}
	brokertest.Eventually(t, patience, func() error { return p.countIs(t, "orders.inbox", 10) })
}

// Nobody looks at the deliveries while the broker blocks, but what is in flight can be acknowledged no
// more once their connection is closed.
func TestInboxIsLostWhileTheBrokerBlocks(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	x := &proxy{}
	r := p.workAs(t, p.throughProxy(t, x), p.spec.Worker())
	r.log.await(t, "msg=consuming", 1)
	x.block()
	r.log.await(t, "the broker accepts no messages", 1)
	p.closeConnection(t, "rabbitmq-retry orders consume")
	r.log.await(t, "session ended", 1)
	r.log.await(t, "msg=consuming", 2)
	p.retries(t)
}
