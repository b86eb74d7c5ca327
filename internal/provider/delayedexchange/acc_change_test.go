package delayedexchange_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// delay publishes a message to its first level, as the sidecar does.
func delay(t *testing.T, b *brokertest.Broker, of delayed.Names, wait, unit time.Duration, key, body string) (due time.Time) {
	t.Helper()
	due = time.Now().Add(wait)
	level, m := entering(of, wait, unit, body)
	b.Publish(t, level, key, m)
	return due
}

// entering is a message as the sidecar publishes it, with its first level.
func entering(of delayed.Names, wait, unit time.Duration, body string) (level string, m amqp.Publishing) {
	way := delayed.WayOf(wait, unit)
	m = amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body), Headers: amqp.Table{}}
	for header, waits := range way.Bits {
		m.Headers[header] = waits
	}
	return of.Level(way.Entry), m
}

// arrives waits until a message is in the work queue, and fails if it arrives early.
func arrives(t *testing.T, b *brokertest.Broker, body string, due time.Time) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		m, ok := b.Get(t, "work")
		if !ok {
			return errors.New("nothing arrived")
		}
		if early := time.Until(due); early > 0 || string(m.Body) != body {
			t.Errorf("%q came instead of %q, %s early", m.Body, body, early)
		}
		return nil
	})
}

// levelsOf lists the exchanges and queues of the levels.
func levelsOf(t *testing.T, b *brokertest.Broker) []string {
	t.Helper()
	var found []string
	for _, kind := range []string{"exchanges", "queues"} {
		for _, name := range acctest.Names(t, b, kind) {
			if level, is := delayed.Names("events").LevelOf(name); is {
				found = append(found, fmt.Sprintf("%s %s %d", kind[:1], level.Unit, level.Bit))
			}
		}
	}
	slices.Sort(found)
	return found
}

// eventuallyReported waits until the management API reports this many messages in a queue.
func eventuallyReported(t *testing.T, b *brokertest.Broker, queue string, want int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var found struct {
			Messages *int `json:"messages"`
			Pending  *int `json:"messages_dlx"`
		}
		b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &found)
		if found.Messages == nil || *found.Messages != want || found.Pending == nil {
			return fmt.Errorf("not %d messages in %s", want, queue)
		}
		return nil
	})
}

// levelsAreReportedEmpty waits until the reports on all levels have said for a while that they are empty. An older report can
// follow a newer one.
func levelsAreReportedEmpty(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	since := time.Now()
	brokertest.Eventually(t, func() error {
		var queues []struct {
			Name     string `json:"name"`
			State    string `json:"state"`
			Messages *int   `json:"messages"`
			Pending  *int   `json:"messages_dlx"`
		}
		b.Call(t, http.MethodGet, b.Path("queues"), nil, &queues)
		for _, q := range queues {
			reported := q.State == "running" && q.Messages != nil && q.Pending != nil && *q.Messages+*q.Pending == 0
			if strings.HasPrefix(q.Name, "events.delay.") && !reported {
				since = time.Now()
				return fmt.Errorf("%s is not reported to be empty: %+v", q.Name, q)
			}
		}
		if time.Since(since) < 2*brokertest.Statistics()+time.Second {
			return errors.New("the levels have not been reported to be empty for two intervals of the statistics")
		}
		return nil
	})
}

// A message that waits in a retired level is on time, and passes through all lower levels. The levels are deleted when all
// are empty, and not earlier.
func TestAccEveryRelease_LevelsThatAreNotNeededDrain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after, both     []string
		levels, retired int
	}{
		"max_delay":          {[]string{`max_delay = "3s"`, `precision = "3s"`}, nil, 1, 4},
		"precision":          {[]string{`max_delay = "90s"`, `precision = "6s"`}, nil, 4, 5},
		"precision finer":    {[]string{`max_delay = "2s"`, `precision = "500ms"`}, nil, 3, 5},
		"max_delay and more": {[]string{`max_delay = "6s"`, `precision = "6s"`}, []string{`type = "direct"`}, 1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			before := exchangeHCL(b, "events", append([]string{`max_delay = "90s"`, `precision = "3s"`}, test.both...)...)
			after := exchangeHCL(b, "events", append(test.after, test.both...)...)
			b.DeclareQueue(t, "work", "quorum", nil)
			var due time.Time
			var whole []string
			accept(t, b, acctest.Times(),
				resource.TestStep{Config: before, ConfigStateChecks: []statecheck.StateCheck{size("levels", 5)}},
				resource.TestStep{
					PreConfig: func() {
						bind(t, b, "events.deliver", "work", "mail", nil)
						// In the uppermost level for 48 s, which is enough for two applies.
						due = delay(t, b, "events", 63*time.Second, 3*time.Second, "mail", "reminder")
						eventuallyReported(t, b, "events.delay.3s.4", 1)
						whole = levelsOf(t, b)
					},
					Config:            after,
					ConfigStateChecks: []statecheck.StateCheck{size("levels", test.levels), size("retired_levels", test.retired)},
				},
				resource.TestStep{
					PreConfig: func() {
						for _, level := range whole {
							if now := levelsOf(t, b); !slices.Contains(now, level) {
								t.Errorf("%s is gone: %q", level, now)
							}
						}
					},
					Config: after, ConfigPlanChecks: empty,
				},
				resource.TestStep{
					PreConfig: func() {
						arrives(t, b, "reminder", due)
						levelsAreReportedEmpty(t, b)
					},
					Config:            after,
					ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)}},
					ConfigStateChecks: []statecheck.StateCheck{size("levels", test.levels), size("retired_levels", 0)},
				},
				resource.TestStep{
					PreConfig: func() {
						if now := levelsOf(t, b); len(now) != 2*test.levels {
							t.Errorf("left: %q", now)
						}
						b.Unbind(t, "events.deliver", "q", "work")
					},
					Config: after, ConfigPlanChecks: empty,
				},
			)
		})
	}
}

// A sidecar that does not know yet that a level is retired publishes there during the proof that it is empty. If a level
// accepts a message just before it is unbound, all levels stay, and the message is on time. A later message goes back to the
// sidecar.
func TestAcc_MessageForALevelThatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	before, after := exchangeHCL(b, "events", `max_delay = "63s"`, `precision = "1s"`), exchangeHCL(b, "events", `max_delay = "3s"`, `precision = "1s"`)
	b.DeclareQueue(t, "work", "quorum", nil)
	unbinds := func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/e/events.delay.1s.5/q/")
	}
	var due time.Time
	var once, returned sync.Once
	early := through(b.Before(t, func(r *http.Request) {
		if unbinds(r) {
			once.Do(func() { due = delay(t, b, "events", 48*time.Second, time.Second, "mail", "late") })
		}
	}))
	wasReturned := false
	late := through(b.After(t, func(r *http.Request, _ *httptest.ResponseRecorder) {
		if unbinds(r) {
			returned.Do(func() { wasReturned = !offer(t, b, 32*time.Second, time.Second, "too late") })
		}
	}))
	var whole []string
	accept(t, b, acctest.Times(),
		resource.TestStep{Config: before},
		resource.TestStep{PreConfig: func() { levelsAreReportedEmpty(t, b) }, Config: after, ExpectNonEmptyPlan: true},
		resource.TestStep{
			PreConfig: func() {
				bind(t, b, "events.deliver", "work", "#", nil)
				whole = levelsOf(t, b)
			},
			Config: early + after,
		},
		resource.TestStep{
			PreConfig: func() {
				if now := levelsOf(t, b); due.IsZero() || !slices.Equal(now, whole) {
					t.Errorf("due %s, and the levels are %q instead of %q", due, now, whole)
				}
				arrives(t, b, "late", due)
				levelsAreReportedEmpty(t, b)
				b.Unbind(t, "events.deliver", "q", "work")
			},
			Config: late + after,
		},
		resource.TestStep{
			PreConfig: func() {
				if now := levelsOf(t, b); !wasReturned || len(now) != 4 {
					t.Errorf("returned: %t, left: %q", wasReturned, now)
				}
			},
			Config: after, ConfigPlanChecks: empty,
		},
	)
}

// through is a provider whose requests go through this endpoint.
func through(endpoint string) string {
	return fmt.Sprintf("provider \"rabbitmq\" {\n  endpoint = %q\n}\n", endpoint)
}

// Levels that were configured before are not changed, and new ones are added above.
func TestAcc_MaxDelayRaised(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	before, after := exchangeHCL(b, "events", `max_delay = "3s"`, `precision = "1s"`), exchangeHCL(b, "events", `max_delay = "15s"`, `precision = "1s"`)
	b.DeclareQueue(t, "work", "quorum", nil)
	var first, second time.Time
	accept(t, b, acctest.Times(),
		resource.TestStep{Config: before},
		resource.TestStep{
			PreConfig: func() {
				bind(t, b, "events.deliver", "work", "mail.*", nil)
				first = delay(t, b, "events", 3*time.Second, time.Second, "mail.new", "first")
			},
			Config: after,
		},
		resource.TestStep{
			PreConfig: func() {
				second = delay(t, b, "events", 6*time.Second, time.Second, "mail.new", "second")
				arrives(t, b, "first", first)
				arrives(t, b, "second", second)
				b.Unbind(t, "events.deliver", "q", "work")
			},
			Config: after, ConfigPlanChecks: empty,
		},
	)
}
