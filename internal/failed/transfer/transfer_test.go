package transfer_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// A look shows each message once, and changes nothing.
func TestLook(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		empty := b.look(t.Context(), t)
		assert.Truef(t, empty.Ready == 0 && empty.Seen == 0, "result %+v", empty)
		bodies := numbered("m", 3000)
		b.fill(t, bodies...)
		for range 3 {
			seen := map[string]bool{}
			result, err := transfer.Run(t.Context(), b.Queue, transfer.Job{Decide: func(e *failed.Entry) transfer.Choice {
				seen[string(e.Body)] = true
				return transfer.Choice{}
			}})
			assert.Truef(t, err == nil && result.Seen == len(bodies) && len(seen) == len(bodies) && result.Consumers == 0,
				"saw %d messages: %+v, %v", len(seen), result, err)
		}
		b.expect(t, source, bodies)
	})
}

// A replay publishes each selected message once, and leaves the rest.
func TestReplaySome(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		meant, rest := numbered("meant", 2500), numbered("rest", 5000)
		b.fill(t, rest[:4000]...)
		b.fill(t, meant...)
		b.fill(t, rest[4000:]...)
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: only("meant")})
		assert.Truef(t, err == nil && result.Confirmed == len(meant) && result.Uncertain == 0 && !result.Unverified,
			"result %+v, %v", result, err)
		b.expect(t, target, meant)
		b.expect(t, source, rest)
	})
}

// The look and the replay each read the other messages once. Each ends without anything left to wait for.
func TestOrderlyEndReadsNothingAgain(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		meant, rest := numbered("meant", 200), numbered("rest", 300)
		b.fill(t, append(rest, meant...)...)
		opened, open := map[string]int{}, b.Open
		b.Open = func(ctx context.Context, purpose string) (amqpconn.Raw, error) {
			opened[purpose]++
			return open(ctx, purpose)
		}
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: only("meant")})
		assert.Truef(t, err == nil && result.Confirmed == len(meant) && !result.Unverified && opened["consume"] == 2,
			"result %+v, %v, connections %v", result, err, opened)
		b.expect(t, target, meant)
		b.expect(t, source, rest)
	})
}

// While workers park messages and a second operator replays, too, each message is replayed once.
func TestReplayInCompany(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		company(t, b, 4000)
	})
}

// company replays n messages, while others arrive and a second operator replays.
func company(t *testing.T, b bench, n int) {
	t.Helper()
	bodies, later := numbered("m", n), numbered("later", n*3/20)
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
	// A run that looked while the other one held all messages saw fewer.
	result, err := b.replay(t.Context(), t, transfer.Job{Decide: only("m-")})
	require.NoError(t, err, result)
	b.expect(t, target, bodies)
	b.expect(t, source, later)
}

// A context that ends stops the run in good order.
func TestStop(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		interrupted(t, b, 4000)
	})
}

func interrupted(t *testing.T, b bench, n int) {
	t.Helper()
	bodies := numbered("m", n)
	b.fill(t, bodies...)
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	result, err := b.replay(ctx, t, transfer.Job{Decide: func(e *failed.Entry) transfer.Choice {
		if count++; count == n/3 {
			cancel()
		}
		return move(e)
	}})
	assert.Truef(t, err == nil && result.Interrupted && result.Confirmed != 0 && result.Confirmed < n && result.Uncertain == 0 &&
		!result.Unverified, "result %+v, %v", result, err)
	rest, err := b.replay(t.Context(), t, transfer.Job{Decide: move})
	require.NoError(t, err)
	assert.Equal(t, n, result.Confirmed+rest.Confirmed)
	b.expect(t, target, bodies)
	b.expect(t, source, nil)
}

// Equal messages share an id, but one of them does not count as the copy of another.
func TestLimitAmongEqualMessages(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		b.fill(t, "same", "same", "other")
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: only("same"), Limit: 1})
		assert.Truef(t, err == nil && result.Confirmed == 1 && !result.Unverified, "result %+v, %v", result, err)
		b.expect(t, target, []string{"same"})
		b.expect(t, source, []string{"same", "other"})
	})
}

func TestReturned(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		b.fill(t, "lost", "kept", "lost")
		outcomes := map[bool]int{}
		result, err := b.replay(t.Context(), t, transfer.Job{
			Decide: func(e *failed.Entry) transfer.Choice {
				if string(e.Body) == "lost" {
					return moveTo("", "nowhere", e)
				}
				return move(e)
			},
			Done: func(_ failed.Publishing, confirmed bool) { outcomes[confirmed]++ },
		})
		assert.Truef(t, err == nil && result.Confirmed == 1 && result.Returned == 2 && outcomes[false] == 2,
			"result %+v, %v", result, err)
		b.expect(t, source, []string{"lost", "lost"})
		b.expect(t, target, []string{"kept"})
	})
}

func TestDrop(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		b.fill(t, numbered("m", 1200)...)
		job := transfer.Job{Drops: true, Limit: 1100, Decide: func(*failed.Entry) transfer.Choice { return transfer.Choice{Drop: true} }}
		result, err := transfer.Run(t.Context(), b.Queue, job)
		assert.Truef(t, err == nil && result.Dropped == 1100, "%+v, %v", result, err)
		assert.Len(t, b.drain(t, source), 100)
	})
}

func TestRate(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		b.fill(t, append(numbered("rest", 700), numbered("meant", 300)...)...)
		began := time.Now()
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: only("meant"), Rate: 50, Interval: 2 * time.Second})
		if took := time.Since(began); err != nil || took < 5700*time.Millisecond || result.Confirmed != 300 {
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
	require.ErrorContains(t, err, `queue "nowhere" does not exist`)
}

// The broker's refusals quote the queue's name, which must not change how they are understood.
func TestNamesDecideNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, "quorum")
	name, password := b.User(t, "", "", "", "^$")
	for _, queue := range []string{"plain", "rabbit_classic_queue", "of queue type rabbit_classic_queue", "exclusive use", "in exclusive use"} {
		b.DeclareQueue(t, queue, "quorum", nil)
		b.Name, b.Open, b.uri = queue, b.open, b.URI
		kind, err := b.kind(t)
		assert.Truef(t, err == nil && kind == amqp.QueueTypeQuorum, "%s: %q, %v", queue, kind, err)
		b.uri = strings.Replace(b.URI, b.Username+":"+b.Password, name+":"+password, 1)
		_, err = b.kind(t)
		require.ErrorContains(t, err, "this user cannot read the queue", queue)
	}
}

func TestMissingExchange(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		b.fill(t, numbered("m", 100)...)
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: func(e *failed.Entry) transfer.Choice {
			return moveTo("gone", target, e)
		}})
		assert.Truef(t, err != nil && strings.Contains(err.Error(), `exchange "gone" does not exist`) && result.Uncertain == 0,
			"result %+v, %v", result, err)
		b.expect(t, source, numbered("m", 100))
	})
}

// soon is the time limit for a run to notice that messages have vanished.
var soon = brokertest.Slow(6 * time.Second)

// purge removes the ready messages.
func (b *bench) purge(t *testing.T) {
	t.Helper()
	ch := b.Channel(t)
	defer func() { _ = ch.Close() }()
	if _, err := ch.QueuePurge(source, false); err != nil {
		t.Error(err)
	}
}

// If the queue is purged during a run, the run ends soon and reports how many messages did not come.
func TestPurgedMeanwhile(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		for _, c := range []struct {
			messages, before int
			rate             float64
		}{{3000, 500, 0}, {200, 20, 10}} {
			b.fill(t, numbered("m", c.messages)...)
			seen := 0
			var purged time.Time
			result, err := transfer.Run(t.Context(), b.Queue, transfer.Job{Publishes: true, Rate: c.rate, Decide: func(e *failed.Entry) transfer.Choice {
				if seen++; seen == c.before {
					b.purge(t)
					purged = time.Now()
				}
				return move(e)
			}})
			took := time.Since(purged)
			assert.Truef(t, err == nil && took <= soon, "after %s: %v", took, err)
			assert.Truef(t, result.Vanished > 0 && result.Confirmed+result.Vanished == c.messages && result.MostDoubled() == 0, "%+v", result)
			assert.Len(t, b.drain(t, target), result.Confirmed)
			b.expect(t, source, nil)
		}
	})
}

// maxMessageSize is the broker's default limit in bytes.
func (b *bench) maxMessageSize() int {
	if b.VersionAtLeast("4.0") {
		return 16 << 20
	}
	return 128 << 20
}

// Only messages that are too large stay. No message is published twice, or stays unconfirmed.
func TestOversized(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		b.fill(t, numbered("m", 300)...)
		limit := b.maxMessageSize()
		large := make([]byte, limit+1)
		meant := []string{"m-00010", "m-00150", "m-00151"}
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: func(e *failed.Entry) transfer.Choice {
			choice := move(e)
			switch {
			case slices.Contains(meant, string(e.Body)):
				choice.Publish.Body = large
			case string(e.Body) == "m-00100":
				choice.Publish.Body = append(slices.Clone(e.Body), large[:1<<20]...)
			}
			return choice
		}})
		assert.Truef(t, err == nil && result.Confirmed == 297 && result.Uncertain+result.Returned+result.Refused == 0 && !result.Unverified,
			"result %+v, %v", result, err)
		positions := []int{}
		for _, o := range result.Oversized {
			positions = append(positions, o.Position)
			assert.Truef(t, o.Size == limit+1 && o.Max == limit, "%+v", o)
		}
		assert.Equal(t, []int{11, 151, 152}, positions)
		b.expect(t, source, meant)
		got := b.drain(t, target)
		assert.Truef(t, len(got) == 297 && len(slices.Compact(got)) == 297, "%d arrived", len(got))
	})
}

// The same holds for messages that come from no queue. The first one is too large, too.
func TestSendOversized(t *testing.T) {
	t.Parallel()
	b := newBench(t, "quorum")
	large := make([]byte, b.maxMessageSize()+1)
	bodies := [][]byte{large, []byte("a"), []byte("b"), large[:1<<20], []byte("c"), large, []byte("d")}
	line, outcomes := 0, map[bool]int{}
	result, err := transfer.Send(t.Context(), b.Queue, transfer.Sending{Next: func() (p failed.Publishing, ok bool, err error) {
		if line == len(bodies) {
			return p, false, nil
		}
		line++
		return failed.Publishing{RoutingKey: target, Properties: noProperties, Body: bodies[line-1], Line: line}, true, nil
	}, Done: func(_ failed.Publishing, confirmed bool) { outcomes[confirmed]++ }})
	require.Truef(t, err == nil && result.Confirmed == 5 && result.Uncertain == 0 && len(result.Oversized) == 2 &&
		outcomes[false] == 2, "result %+v, %v, outcomes %v", result, err, outcomes)
	o := result.Oversized
	assert.Truef(t, o[0].Line == 1 && o[1].Line == 6 && o[1].Max == len(large)-1, "%+v", o)
	assert.Len(t, b.drain(t, target), 5)
}
