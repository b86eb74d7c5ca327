package transfer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

func TestEmptyQueue(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		if r := b.look(t.Context(), t); r.Ready != 0 || r.Seen != 0 {
			t.Errorf("result %+v", r)
		}
	})
}

// A look shows each message once, and changes nothing.
func TestLook(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		bodies := numbered("m", 3000)
		b.fill(t, bodies...)
		for range 3 {
			seen := map[string]bool{}
			result, err := transfer.Run(t.Context(), b.Queue, transfer.Job{Decide: func(e *failed.Entry) transfer.Verdict {
				seen[string(e.Body)] = true
				return transfer.Verdict{}
			}})
			if err != nil || result.Seen != len(bodies) || len(seen) != len(bodies) || result.Consumers != 0 {
				t.Errorf("saw %d messages: %+v, %v", len(seen), result, err)
			}
		}
		b.expect(t, source, bodies)
	})
}

// What is meant is published once; the rest stays.
func TestReplaySome(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		meant, rest := numbered("meant", 2500), numbered("rest", 5000)
		b.fill(t, rest[:4000]...)
		b.fill(t, meant...)
		b.fill(t, rest[4000:]...)
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: only("meant")})
		if err != nil || result.Confirmed != len(meant) || result.Uncertain > 0 || result.Unverified {
			t.Errorf("result %+v, %v", result, err)
		}
		b.expect(t, target, meant)
		b.expect(t, source, rest)
	})
}

// What is not meant is read by the look and by the replay, and not once more. Each leaves nothing to wait for.
func TestOrderlyEndReadsNothingAgain(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		meant, rest := numbered("meant", 200), numbered("rest", 300)
		b.fill(t, append(rest, meant...)...)
		opened, open := map[string]int{}, b.Open
		b.Open = func(ctx context.Context, purpose string) (amqpconn.Raw, error) {
			opened[purpose]++
			return open(ctx, purpose)
		}
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: only("meant")})
		if err != nil || result.Confirmed != len(meant) || result.Unverified || opened["consume"] != 2 {
			t.Errorf("result %+v, %v, connections %v", result, err, opened)
		}
		b.expect(t, target, meant)
		b.expect(t, source, rest)
	})
}

// Others park messages, and a second operator replays, too: each message is replayed once.
func TestReplayInCompany(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		company(t, b, 4000, 600)
	})
}

// company replays so many messages, while others come and a second operator replays.
func company(t *testing.T, b bench, n, more int) {
	t.Helper()
	bodies, later := numbered("m", n), numbered("later", more)
	b.fill(t, bodies...)
	var wg sync.WaitGroup
	var results [2]transfer.Result
	for i := range results {
		wg.Go(func() {
			var err error
			if results[i], err = b.replay(t.Context(), t, transfer.Job{Decide: only("m-")}); err != nil {
				t.Error(err)
			}
		})
	}
	b.fill(t, later...)
	wg.Wait()
	// One that looked while the other held everything saw less.
	if result, err := b.replay(t.Context(), t, transfer.Job{Decide: only("m-")}); err != nil {
		t.Errorf("%+v, %v", result, err)
	}
	b.expect(t, target, bodies)
	b.expect(t, source, later)
}

// A context that ends stops the run in good order.
func TestStop(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		interrupted(t, b, 4000)
	})
}

func interrupted(t *testing.T, b bench, n int) {
	t.Helper()
	bodies := numbered("m", n)
	b.fill(t, bodies...)
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	result, err := b.replay(ctx, t, transfer.Job{Decide: func(e *failed.Entry) transfer.Verdict {
		if count++; count == n/3 {
			cancel()
		}
		return move(e)
	}})
	if err != nil || !result.Interrupted || result.Confirmed == 0 || result.Confirmed >= n || result.Uncertain > 0 || result.Unverified {
		t.Errorf("result %+v, %v", result, err)
	}
	rest, err := b.replay(t.Context(), t, transfer.Job{Decide: move})
	if err != nil || result.Confirmed+rest.Confirmed != n {
		t.Errorf("then %+v, %v", rest, err)
	}
	b.expect(t, target, bodies)
	b.expect(t, source, nil)
}

// Equal messages share an id, and one of them is not taken for the copy of the other.
func TestLimitAmongEqualMessages(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		b.fill(t, "same", "same", "other")
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: only("same"), Limit: 1})
		if err != nil || result.Confirmed != 1 || result.Unverified {
			t.Errorf("result %+v, %v", result, err)
		}
		b.expect(t, target, []string{"same"})
		b.expect(t, source, []string{"same", "other"})
	})
}

func TestReturned(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		b.fill(t, "lost", "kept", "lost")
		outcomes := map[transfer.Outcome]int{}
		result, err := b.replay(t.Context(), t, transfer.Job{
			Decide: func(e *failed.Entry) transfer.Verdict {
				if string(e.Body) == "lost" {
					return moveTo("", "nowhere", e)
				}
				return move(e)
			},
			Done: func(_ failed.Publishing, o transfer.Outcome) { outcomes[o]++ },
		})
		if err != nil || result.Confirmed != 1 || result.Returned != 2 || outcomes[transfer.Returned] != 2 {
			t.Errorf("result %+v, %v", result, err)
		}
		b.expect(t, source, []string{"lost", "lost"})
		b.expect(t, target, []string{"kept"})
	})
}

// What is dropped has been kept before.
func TestDrop(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		b.fill(t, numbered("m", 1200)...)
		waiting, kept := 0, 0
		job := transfer.Job{Drops: true, Limit: 1100, Decide: func(*failed.Entry) transfer.Verdict {
			waiting++
			return transfer.Verdict{Drop: true}
		}, Keep: func() error {
			kept, waiting = kept+waiting, 0
			return nil
		}}
		result, err := transfer.Run(t.Context(), b.Queue, job)
		if err != nil || result.Dropped != 1100 || kept != 1100 {
			t.Errorf("kept %d: %+v, %v", kept, result, err)
		}
		job.Keep = func() error { return errors.New("disk full") }
		if result, err = transfer.Run(t.Context(), b.Queue, job); err == nil || !strings.Contains(err.Error(), "disk full") || result.Dropped > 0 {
			t.Errorf("result %+v, %v", result, err)
		}
		if left := b.drain(t, source); len(left) != 100 {
			t.Errorf("%d are left", len(left))
		}
	})
}

func TestRate(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		b.fill(t, append(numbered("rest", 700), numbered("meant", 300)...)...)
		began := time.Now()
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: only("meant"), Rate: 50, Interval: 2 * time.Second})
		if took := time.Since(began); err != nil || took < 5700*time.Millisecond || took > time.Minute || result.Confirmed != 300 {
			t.Errorf("after %s: %+v, %v", took, result, err)
		}
		b.expect(t, target, numbered("meant", 300))
		b.expect(t, source, numbered("rest", 700))
	})
}

func TestMissingQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t, "classic")
	b.Name = "nowhere"
	_, err := transfer.Run(t.Context(), b.Queue, transfer.Job{Decide: move})
	if err == nil || !strings.Contains(err.Error(), `queue "nowhere" does not exist`) {
		t.Errorf("error %v", err)
	}
}

// The broker's refusals quote the queue, whose name decides nothing.
func TestNamesDecideNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, "quorum")
	name, password := b.User(t, "", "", "", "^$")
	for _, queue := range []string{"plain", "rabbit_classic_queue", "of queue type rabbit_classic_queue", "exclusive use", "in exclusive use"} {
		b.DeclareQueue(t, queue, "quorum", nil)
		b.Name, b.Open, b.uri = queue, b.open, b.URI
		if kind, err := b.Kind(t.Context()); err != nil || kind != transfer.Quorum {
			t.Errorf("%s: %q, %v", queue, kind, err)
		}
		b.uri = strings.Replace(b.URI, b.Username+":"+b.Password, name+":"+password, 1)
		if _, err := b.Kind(t.Context()); err == nil || !strings.Contains(err.Error(), "this user may not read the queue") {
			t.Errorf("%s: %v", queue, err)
		}
	}
}

func TestMissingExchange(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		b.fill(t, numbered("m", 100)...)
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: func(e *failed.Entry) transfer.Verdict {
			return moveTo("gone", target, e)
		}})
		if err == nil || !strings.Contains(err.Error(), `exchange "gone" does not exist`) || result.Uncertain > 0 {
			t.Errorf("result %+v, %v", result, err)
		}
		b.expect(t, source, numbered("m", 100))
	})
}
