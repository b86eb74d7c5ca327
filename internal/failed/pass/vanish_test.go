package pass_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

// soon is how long a pass takes at most that finds out that messages have vanished, on a busy machine.
const soon = 25 * time.Second

// purge takes away what nobody holds.
func (b *bench) purge(t *testing.T) {
	t.Helper()
	ch := b.Channel(t)
	defer func() { _ = ch.Close() }()
	if _, err := ch.QueuePurge(source, false); err != nil {
		t.Error(err)
	}
}

// Somebody purges the queue while a pass goes over it: it ends soon, and says how many messages did not come.
func TestPurgedMeanwhile(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		b.fill(t, numbered("m", 3000)...)
		seen := 0
		before := b.look(t.Context(), t)
		var purged time.Time
		result, err := pass.Run(t.Context(), b.Queue, pass.Job{
			Before: &before, Publishes: true,
			Decide: func(e *failed.Entry) pass.Verdict {
				if seen++; seen == 500 {
					b.purge(t)
					purged = time.Now()
				}
				return move(e)
			},
		})
		took := time.Since(purged)
		if err != nil || took > soon {
			t.Errorf("after %s: %v", took, err)
		}
		t.Logf("ended after %s", took)
		if result.Vanished == 0 || result.Confirmed+result.Vanished != 3000 || result.MostDoubled() > 0 {
			t.Errorf("%+v", result)
		}
		if got := b.drain(t, target); len(got) != result.Confirmed {
			t.Errorf("%d arrived of %d", len(got), result.Confirmed)
		}
		b.expect(t, source, nil)
	})
}

// What was put back is purged before it is counted: that, too, is noticed soon, and at once by who stops the pass.
func TestPurgedInTheEnd(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"left alone": soon, "stopped": 12 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types(t, func(t *testing.T, b bench) {
				t.Helper()
				meant, rest := numbered("meant", 100), numbered("rest", 200)
				b.fill(t, append(rest, meant...)...)
				before := b.look(t.Context(), t)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				open, awaited := b.Open, 0
				var once sync.Once
				var began time.Time // to wait
				b.Open = func(ctx context.Context, purpose string) (amqpconn.Raw, error) {
					if purpose == "verify" {
						once.Do(func() { b.purge(t) })
					}
					return open(ctx, purpose)
				}
				result, err := pass.Run(ctx, b.Queue, pass.Job{
					Before: &before, Publishes: true, Decide: only("meant"),
					Progress: func(p pass.Progress) {
						if p.Phase != pass.Verifying || !p.Waiting {
							return
						}
						if awaited = max(awaited, p.Missing); began.IsZero() {
							began = time.Now()
						}
						if limit < soon {
							stop()
						}
					},
				})
				took := time.Since(began)
				if err != nil || awaited != len(rest) || took > limit {
					t.Errorf("after %s, awaited %d: %v", took, awaited, err)
				}
				t.Logf("ended after %s", took)
				if result.Confirmed != len(meant) || result.Doubled > 0 {
					t.Errorf("%+v", result)
				}
				b.expect(t, target, meant)
				b.expect(t, source, nil)
			})
		})
	}
}

// A connection that is cut while acknowledgements are verified doubles nothing, and the pass does not say that it might have.
func TestCutInTheEnd(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		meant, rest := numbered("meant", 100), numbered("rest", 50)
		b.fill(t, append(rest, meant...)...)
		before := b.look(t.Context(), t)
		x := &proxy{}
		b.through(t, x, "consume")
		cuts := 0
		result, err := pass.Run(t.Context(), b.Queue, pass.Job{
			Before: &before, Publishes: true, Decide: only("meant"),
			Progress: func(p pass.Progress) {
				if p.Phase == pass.Finishing || p.Phase == pass.Verifying && cuts < 3 {
					cuts++
					time.AfterFunc(50*time.Millisecond, x.cut)
				}
			},
		})
		if result.Confirmed != len(meant) || result.MostDoubled() > 0 || result.Unverified {
			t.Errorf("%+v, %v", result, err)
		}
		b.expect(t, target, meant)
		b.expect(t, source, rest)
	})
}
