package owner_test

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

type attributes map[string]any

// subject is a resource of many objects, and its change.
type subject struct {
	kind, id      string
	before, after attributes
}

// A write of a creation, change or destroy is refused, does not arrive, or is not answered. What was there and is wanted stays, and the
// next apply finishes the rest.
func TestAcc_FaultAtAnyWrite(t *testing.T) {
	t.Parallel()
	failing := func(queue string) attributes {
		return attributes{"work": attributes{"declare": true, "failed_queue": attributes{"name": queue}}}
	}
	for _, s := range []subject{
		{
			"rabbitmq_retry_pipeline", "/orders",
			attributes{"name": "orders", "delays": []string{"5s"}, "work_queues": failing("failures")},
			attributes{"name": "orders", "delays": []string{"9s"}, "work_queues": failing("other failures")},
		},
		{
			"rabbitmq_retry_attachment", "/orders/work",
			attributes{"pipeline": "orders", "queue": "work", "failed_queue": attributes{"name": "failures"}},
			attributes{"pipeline": "orders", "queue": "work", "failed_queue": attributes{"name": "other failures"}, "policy_priority": 9},
		},
		{
			"rabbitmq_delayed_exchange", "/events",
			attributes{"name": "events", "max_delay": "3s", "precision": "1s"},
			attributes{"name": "events", "max_delay": "7s", "precision": "1s", "type": "direct"},
		},
	} {
		for what, do := range map[string]func(*testing.T) func(*acctest.Core) error{
			"create": acctest.Change, "change": acctest.Change, "destroy": acctest.Destruction,
		} {
			t.Run(s.kind+", "+what, func(t *testing.T) {
				t.Parallel()
				var want acctest.Listing
				acctest.AtEachFault(t, func(t *testing.T, write int, fault acctest.Fault) int {
					t.Helper()
					b, core := started(t, s)
					if what != "create" {
						core.MustApply(t)
					}
					if what == "change" {
						core.Config = in(b, s.after)
					}
					before := acctest.List(t, b)
					writes, err := core.Meeting(t, b, write, fault, do(t))
					now := acctest.List(t, b)
					if want == nil {
						require.NoError(t, err)
						want = acctest.List(t, b)
						if what == "change" {
							want = settled(t, b, core)
						}
						return writes
					}
					require.Empty(t, before.And(want).Without(now), "%v", err)
					if what == "change" && slices.Contains(acctest.Names(t, b, "queues"), "failures") {
						require.Contains(t, fmt.Sprint(now), "failed:work", "neither the old nor the new failed queue is bound: %v", err)
					}
					if what == "destroy" {
						require.NoError(t, core.Destroy(t.Context()))
					} else {
						core.Finish(t, url.PathEscape(b.Vhost)+s.id)
					}
					brokertest.Eventually(t, func() error { // a retired queue has no counts at first
						if what != "destroy" {
							core.Settled(t)
						}
						return want.RequireSame(acctest.List(t, b))
					})
					return writes
				})
			})
		}
	}
}

// settled applies until no queue is retired.
func settled(t *testing.T, b *brokertest.Broker, core *acctest.Core) (all acctest.Listing) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		core.Settled(t)
		if all = acctest.List(t, b); strings.Contains(fmt.Sprint(all), "orders.retry.5s") && core.Config["delays"] != nil {
			return errors.New("a queue is still retired")
		}
		return nil
	})
	return all
}

// started is a vhost with what the subject needs.
func started(t *testing.T, s subject) (*brokertest.Broker, *acctest.Core) {
	t.Helper()
	b := brokertest.New(t)
	if s.kind == "rabbitmq_retry_attachment" {
		b.DeclareQueue(t, "work", "quorum", nil)
		pipeline := acctest.Core{
			Type: "rabbitmq_retry_pipeline", Times: acctest.Quick(), Config: in(b, attributes{"name": "orders", "delays": []string{"5s"}}),
		}
		pipeline.MustApply(t)
	}
	return b, &acctest.Core{Type: s.kind, Times: acctest.Quick(), Config: in(b, s.before)}
}

func in(b *brokertest.Broker, of attributes) map[string]any {
	config := map[string]any{"vhost": b.Vhost}
	maps.Copy(config, of)
	return config
}
