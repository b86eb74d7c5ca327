package delayedexchange_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// eventsCore is a delayed exchange with these attributes.
func eventsCore(b *brokertest.Broker, more map[string]any) acctest.Core {
	config := map[string]any{"name": "events", "vhost": b.Vhost}
	maps.Copy(config, more)
	return acctest.Core{Type: resourceType, Config: config, Times: acctest.Quick()}
}

// settled fails unless the plan is empty and the vhost has the wanted objects.
func settled(t *testing.T, b *brokertest.Broker, c *acctest.Core, want acctest.Listing) {
	t.Helper()
	c.RequireEmptyPlan(t)
	require.NoError(t, want.RequireSame(acctest.List(t, b)))
}

// whole is a vhost with only the delayed exchange. If guarded is true, it also has another owner's policy that matches its
// queues.
func whole(t *testing.T, guarded bool) (*brokertest.Broker, acctest.Core) {
	t.Helper()
	b := brokertest.New(t)
	if guarded {
		foreign := map[string]any{"pattern": ".*", "apply-to": "queues", "priority": 1, "definition": map[string]any{"max-length": 5}}
		b.Call(t, http.MethodPut, b.Path("policies", "foreign"), foreign, nil)
	}
	return b, eventsCore(b, map[string]any{"max_delay": "3h", "precision": "1h"})
}

// The next apply finishes the creation, or names the import that is needed first.
func TestAccEveryRelease_CreationKilledAtAnyWriteCanBeFinished(t *testing.T) {
	t.Parallel()
	for _, guarded := range []bool{false, true} {
		t.Run(fmt.Sprintf("policy of others: %t", guarded), func(t *testing.T) {
			t.Parallel()
			var want acctest.Listing
			acctest.AtEachWrite(t, func(t *testing.T, write int) int {
				t.Helper()
				b, c := whole(t, guarded)
				writes := c.Killed(t, b, acctest.At(write), acctest.Change(t))
				if write == 0 {
					want = acctest.List(t, b)
					return writes
				}
				c.Finish(t, importID(b.Vhost, "events"))
				settled(t, b, &c, want)
				return writes
			})
		})
	}
}

// A destroy is killed, and then either repeated or cancelled. If it is cancelled, all objects come back.
func TestAcc_DestroyKilledAtAnyWriteCanBeFinished(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{false, true} {
		t.Run(fmt.Sprintf("then applied: %t", wanted), func(t *testing.T) {
			t.Parallel()
			acctest.AtEachWrite(t, func(t *testing.T, write int) int {
				t.Helper()
				b, c := whole(t, false)
				c.MustApply(t)
				own := acctest.List(t, b)
				writes := c.Killed(t, b, acctest.At(write), acctest.Destruction(t))
				if !wanted {
					require.NoError(t, c.Destroy(t.Context()))
					require.NoError(t, acctest.NothingLeft(t, b))
					return writes
				}
				c.Finish(t, importID(b.Vhost, "events"))
				settled(t, b, &c, own)
				return writes
			})
		})
	}
}

// The delivering exchange is re-created, and all bindings of others are deleted with it for a moment. The next apply restores
// them. Messages that are due while the exchange is missing wait for it. Messages that are due while only the bindings are
// missing go to the unrouted queue. Later messages arrive once.
func TestAcc_ReturnOfTheDeliverExchangeKilledAtAnyWrite(t *testing.T) {
	t.Parallel()
	acctest.AtEachWrite(t, func(t *testing.T, write int) int {
		t.Helper()
		b := brokertest.New(t)
		c := eventsCore(b, map[string]any{"max_delay": "31s", "precision": "1s"})
		c.MustApply(t)
		bindOthers(t, b)
		want := acctest.List(t, b)
		alter(t, b, "events.deliver")
		var due time.Time
		before := func() {
			delay(t, b, "events", time.Second, time.Second, "mail.now", "now")
			due = delay(t, b, "events", 25*time.Second, time.Second, "mail.later", "later")
		}
		writes := c.Killed(t, b, acctest.At(write, before), acctest.Change(t))
		if write == 0 {
			settled(t, b, &c, want)
			return writes
		}
		time.Sleep(time.Until(due.Add(-22 * time.Second))) // the first message has been due for two seconds
		away, _ := b.Request(t, http.MethodGet, b.Path("exchanges", "events.deliver"), nil)
		c.MustApply(t)
		settled(t, b, &c, want)
		if time.Now().After(due) {
			t.Fatal("the repair took so long that nothing waited for it to end")
		}
		kept := arrived(t, b, "events.delay.unrouted")
		came := arrived(t, b, "work")
		if away == http.StatusNotFound {
			brokertest.Eventually(t, func() error {
				came = append(came, arrived(t, b, "work")...)
				if len(came) != 1 {
					return fmt.Errorf("%q came of what was due while the exchange was away", came)
				}
				return nil
			})
		}
		if all := append(came, kept...); len(all) != 1 || all[0] != "now" {
			t.Errorf("came: %q, kept: %q", came, kept)
		}
		arrives(t, b, "later", due)
		for _, queue := range acctest.Names(t, b, "queues") {
			if left := arrived(t, b, queue); len(left) > 0 {
				t.Errorf("too many in %s: %q", queue, left)
			}
		}
		return writes
	})
}

// A re-creation is killed while another owner's exchange is bound, or while its binding is only noted. A destroy refuses, and
// the next apply restores all bindings.
func TestAcc_DestroyAfterAKilledReturnKeepsTheBindingsOfOthers(t *testing.T) {
	t.Parallel()
	acctest.AtEachWrite(t, func(t *testing.T, write int) int {
		t.Helper()
		b, c := whole(t, false)
		c.MustApply(t)
		b.Call(t, http.MethodPut, b.Path("exchanges", "shop"), map[string]any{"type": "topic", "durable": true}, nil)
		b.Call(t, http.MethodPost, b.Path("bindings", "e", "shop", "e", "events"), map[string]any{"routing_key": "#"}, nil)
		want := acctest.List(t, b)
		alter(t, b, "events")
		writes := c.Killed(t, b, acctest.At(write), acctest.Change(t))
		if err := c.Destroy(t.Context()); err == nil || !strings.Contains(err.Error(), "shop -> events") {
			t.Fatalf("the destroy: %v", err)
		}
		c.Finish(t, importID(b.Vhost, "events"))
		settled(t, b, &c, want)
		return writes
	})
}

// arrived takes the messages from a queue.
func arrived(t *testing.T, b *brokertest.Broker, queue string) []string {
	t.Helper()
	var bodies []string
	for m, ok := b.Get(t, queue); ok; m, ok = b.Get(t, queue) {
		bodies = append(bodies, string(m.Body))
	}
	return bodies
}

// bindOthers binds a queue and an exchange to the delivering exchange, with keys and arguments. It also binds that exchange
// to another source of messages.
func bindOthers(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	b.DeclareQueue(t, "work", "quorum", nil)
	b.Call(t, http.MethodPut, b.Path("exchanges", "others"), map[string]any{"type": "topic"}, nil)
	bind(t, b, "events.deliver", "work", "mail.#", map[string]any{"team": "mails", "version": 2})
	bind(t, b, "events.deliver", "work", "letter.*", nil)
	for _, ends := range [][]string{{"events.deliver", "others"}, {"others", "events.deliver"}} {
		body := map[string]any{"routing_key": "other.#", "arguments": map[string]any{"team": "others"}}
		b.Call(t, http.MethodPost, b.Path("bindings", "e", ends[0], "e", ends[1]), body, nil)
	}
}

// alter re-creates an exchange without its alternate exchange, and with all its bindings.
func alter(t *testing.T, b *brokertest.Broker, exchange string) {
	t.Helper()
	acctest.Remake(t, b, topology.Topology{Exchanges: map[string]topology.Exchange{exchange: {Type: "topic"}}})
}

// Messages that are due while the delivering exchange is missing are held by the broker for three to six minutes. A change of
// a policy, once the route is back, makes the broker send them at once. The apply that restores the route is killed, and the
// next apply makes sure that no message must wait.
func TestAccEveryRelease_HeldMessagesGoOnAfterAKillAtAnyWrite(t *testing.T) {
	t.Parallel()
	acctest.AtEachWrite(t, func(t *testing.T, write int) int {
		t.Helper()
		b := brokertest.New(t)
		c := eventsCore(b, map[string]any{"max_delay": "3s", "precision": "1s"})
		c.MustApply(t)
		b.Call(t, http.MethodDelete, b.Path("exchanges", "events.deliver"), nil, nil)
		due := delay(t, b, "events", time.Second, time.Second, "mail", "held")
		time.Sleep(time.Until(due.Add(2 * time.Second))) // the broker has tried to send it by then
		writes := c.Killed(t, b, acctest.At(write), acctest.Change(t))
		c.MustApply(t)
		brokertest.Eventually(t, func() error {
			if _, ok := b.Get(t, "events.delay.unrouted"); !ok { // no queue is bound
				return errors.New("the message is held still")
			}
			return nil
		})
		return writes
	})
}

// Unneeded levels are removed while a sidecar with the old configuration publishes to the highest one, and the provider is
// killed. If the level accepted a message, the message stays there and keeps its further route. If not, the sidecar knows it.
func TestAcc_RemovalOfLevelsKilledAtAnyWriteLosesNothing(t *testing.T) {
	t.Parallel()
	var want acctest.Listing
	acctest.AtEachWrite(t, func(t *testing.T, write int) int {
		t.Helper()
		b := brokertest.New(t)
		c := eventsCore(b, map[string]any{"max_delay": "15h", "precision": "1h"})
		c.MustApply(t)
		c.Config["max_delay"] = "3h"
		c.MustApply(t)
		levelsAreReported(t, b, 0)
		before := acctest.List(t, b)
		accepted := false
		writes := c.Killed(t, b, acctest.At(write, func() { accepted = offer(t, b, 8*time.Hour, time.Hour, "last") }), acctest.Change(t))
		if write == 0 {
			want = acctest.List(t, b)
			if now := levelsOf(t, b); len(now) != 4 {
				t.Errorf("left: %q", now)
			}
			return writes
		}
		c.Settled(t)
		if accepted {
			settled(t, b, &c, before)
			if kept := arrived(t, b, "events.delay.1h.3"); !slices.Equal(kept, []string{"last"}) {
				t.Errorf("kept: %q", kept)
			}
			levelsAreReported(t, b, 0)
			c.Settled(t)
		}
		brokertest.Eventually(t, func() error {
			c.Settled(t)
			return want.RequireSame(acctest.List(t, b))
		})
		return writes
	})
}

// levelsAreReported waits until the management API reports this many messages in the two highest levels.
func levelsAreReported(t *testing.T, b *brokertest.Broker, want int) {
	t.Helper()
	for _, bit := range []int{2, 3} {
		eventuallyReported(t, b, delayed.Names("events").Level(delayed.Level{Unit: time.Hour, Bit: bit}), want)
	}
}

// offer publishes a message to its first level, as the sidecar does, and reports whether a queue accepted it.
func offer(t *testing.T, b *brokertest.Broker, wait, unit time.Duration, body string) (accepted bool) {
	t.Helper()
	ch := b.Channel(t)
	if err := ch.Confirm(false); err != nil {
		t.Error(err)
		return false
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, 1))
	level, m := entering("events", wait, unit, body)
	confirm, err := ch.PublishWithDeferredConfirm(level, "mail", true, false, m)
	if err != nil {
		t.Error(err)
		return false
	}
	return confirm.Wait() && len(returns) == 0 // a return comes before its confirm
}
