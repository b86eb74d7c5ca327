package delayedexchange_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// What was due while the exchange that routes it was away is held by the broker for three to six minutes, unless a policy changes
// once the way is back. The apply that restores the way is killed; the next one sees to it that nothing has to wait.
func TestAccEveryRelease_HeldMessagesGoOnAfterAKillAtAnyWrite(t *testing.T) {
	t.Parallel()
	acctest.AtEachWrite(t, func(t *testing.T, write int) int {
		t.Helper()
		b := brokertest.New(t)
		c := eventsCore(b, map[string]any{"max_delay": "3s", "precision": "1s"})
		c.MustApply(t)
		b.Call(t, http.MethodDelete, b.Path("exchanges", "events.deliver"), nil, nil)
		due := delay(t, b, "events", time.Second, time.Second, "mail", "held")
		<-time.After(time.Until(due.Add(2 * time.Second))) // the broker has tried to send it by then
		writes := c.Killed(t, b, acctest.At(write), acctest.Change(t))
		c.MustApply(t)
		brokertest.Eventually(t, func() error {
			if _, ok := b.Get(t, "events.delay.unrouted"); !ok { // where nobody has bound a queue
				return errors.New("the message is held still")
			}
			return nil
		})
		return writes
	})
}
