package delayedexchange_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// eventsCore is what Terraform's core knows of a delayed exchange with these more attributes.
func eventsCore(b *brokertest.Broker, more map[string]any) acctest.Core {
	config := map[string]any{"name": "events", "vhost": b.Vhost}
	maps.Copy(config, more)
	return acctest.Core{Type: resourceType, Config: config, Times: acctest.Quick()}
}

// settled fails unless the plan is empty, and the vhost is as it was.
func settled(t *testing.T, b *brokertest.Broker, c *acctest.Core, want acctest.Listing) {
	t.Helper()
	c.RequireEmptyPlan(t)
	require.NoError(t, want.RequireSame(acctest.List(t, b)))
}

// whole is a vhost with nothing but the delayed exchange, and perhaps a policy of others that would match its queues.
func whole(t *testing.T, guarded bool) (*brokertest.Broker, acctest.Core) {
	t.Helper()
	b := brokertest.New(t)
	if guarded {
		foreign := map[string]any{"pattern": ".*", "apply-to": "queues", "priority": 1, "definition": map[string]any{"max-length": 5}}
		b.Call(t, http.MethodPut, b.Path("policies", "foreign"), foreign, nil)
	}
	return b, eventsCore(b, map[string]any{"max_delay": "3h", "precision": "1h"})
}

// The next apply finishes the work, or names the import after which it does.
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

// A destroy is killed, and then done again, or not wanted any more: everything comes back.
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
					require.NoError(t, nothingLeft(t, b))
					return writes
				}
				c.Finish(t, importID(b.Vhost, "events"))
				settled(t, b, &c, own)
				return writes
			})
		})
	}
}

// The exchange that routes what is due is re-created, and all that others have bound to it goes with it for a moment. The next
// apply gives it back. What is due while the exchange is away waits for it; what is due while only the bindings are is kept in
// the unrouted queue; what is due later comes once.
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
		<-time.After(time.Until(due.Add(-22 * time.Second))) // the first message has been due for two seconds
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

// A re-creation is killed while an exchange of others is bound, or its binding noted. A destroy refuses, and the next apply gives
// everything back.
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

// arrived takes the messages out of a queue.
func arrived(t *testing.T, b *brokertest.Broker, queue string) []string {
	t.Helper()
	var bodies []string
	for m, ok := b.Get(t, queue); ok; m, ok = b.Get(t, queue) {
		bodies = append(bodies, string(m.Body))
	}
	return bodies
}

// bindOthers binds to the exchange that routes what is due, with keys and arguments, a queue, an exchange, and what it gets
// messages from besides.
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

// alter re-creates an exchange without its alternate exchange, with all its bindings.
func alter(t *testing.T, b *brokertest.Broker, exchange string) {
	t.Helper()
	acctest.Remake(t, b, topology.Topology{Exchanges: map[string]topology.Exchange{exchange: {Type: "topic"}}})
}
