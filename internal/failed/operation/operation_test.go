package operation_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest/amqp10"
)

// bench is a vhost with a failed queue and a work queue.
type bench struct {
	*brokertest.Broker
	operation.Target
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Broker: brokertest.New(t)}
	b.Target = operation.Target{
		Name: "orders.failed", Vhost: b.Broker.Vhost, Pipeline: "orders",
		Brokers: func() ([]amqpconn.URI, error) { return amqpconn.ParseURIs(b.URI, certificates.Set{}) },
	}
	for _, queue := range []string{"orders.failed", "work"} {
		b.DeclareQueue(t, queue, "quorum", nil)
	}
	return b
}

// park puts messages with these bodies into the failed queue.
func (b *bench) park(t *testing.T, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		b.Publish(t, "", "orders.failed", amqp.Publishing{Body: []byte(body), Headers: amqp.Table{
			"dead-letter-reason": "exhausted", "retry-queue": "work", "retry-pipeline": "orders", "dead-letter-at": int64(1_764_000_000_000),
		}})
	}
}

func (b *bench) guard(t *testing.T, o operation.Options) *operation.Run {
	t.Helper()
	r, err := b.Guard(t.Context(), o, true)
	require.NoError(t, err)
	return r
}

// left are the bodies of the messages in the failed queue.
func (b *bench) left(t *testing.T) (bodies []string) {
	t.Helper()
	_, err := b.guard(t, operation.Options{}).Look(t.Context(), failed.Filter{}, func(e *failed.Entry) (enough bool) {
		bodies = append(bodies, string(e.Body))
		return false
	})
	require.NoError(t, err)
	return bodies
}

// has waits until the failed queue has this many messages.
func (b *bench) has(t *testing.T, want int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		count, err := b.Count(t.Context())
		if err == nil && count.Ready != want {
			err = fmt.Errorf("%d messages, want %d", count.Ready, want)
		}
		return err
	})
}

var exhausted = failed.Filter{Reasons: []string{"exhausted"}}

// A run acts only on messages that the look has seen, even if later messages match the filter.
func TestChosenMessagesAlone(t *testing.T) {
	t.Parallel()
	t.Run("replay", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.park(t, "first", "equal", "equal")
		r := b.guard(t, operation.Options{Limit: 2}).NewReplay("work", 0)
		look, err := r.Look(t.Context(), exhausted)
		require.NoError(t, err)
		assert.Equal(t, []int{3, 3, 2}, []int{look.Selected, r.Found, r.Total()})
		d, _ := b.Get(t, "orders.failed") // another consumer takes a chosen message
		require.Equal(t, "first", string(d.Body))
		b.park(t, "later")
		b.has(t, 3)
		result, err := r.Publish(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, result.Confirmed)
		require.Error(t, r.Unfinished(result))
		assert.ElementsMatch(t, []string{"equal", "later"}, b.left(t))
	})
	t.Run("remove", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.park(t, "first", "second")
		r := b.guard(t, operation.Options{})
		_, chosen, err := r.Choose(t.Context(), exhausted)
		require.NoError(t, err)
		b.park(t, "later")
		b.has(t, 3)
		result, err := r.Remove(t.Context(), chosen)
		require.NoError(t, err)
		assert.Equal(t, 2, result.Dropped)
		require.NoError(t, operation.Unremoved(result, 2))
		assert.Equal(t, []string{"later"}, b.left(t))
	})
}

// A whole id ends the look. The beginning of an id does not, since another message can have the same beginning.
func TestFindLooksNoFurther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 5 {
		b.park(t, fmt.Sprint(i))
	}
	b.has(t, 5)
	var id string
	_, err := b.guard(t, operation.Options{}).Look(t.Context(), failed.Filter{}, func(e *failed.Entry) (enough bool) {
		if string(e.Body) == "1" {
			id = e.ID
		}
		return false
	})
	require.NoError(t, err)
	for _, c := range []struct {
		wanted string
		seen   int
	}{{id[:12], 5}, {id, 2}} {
		b.has(t, 5)
		found, err := operation.Find(t.Context(), b.guard(t, operation.Options{}), c.wanted)
		require.NoError(t, err)
		assert.Equal(t, c.seen, found.Seen, c.wanted)
		require.Len(t, found.Entries, 1)
		assert.Equal(t, "1", string(found.Entries[id].Body))
	}
}

// Lines that are appended after the check do not belong to the import, even if only a newer release reads them.
func TestImportsCheckedLinesAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Name, b.Pipeline = "work", ""
	f, err := os.Create(filepath.Join(t.TempDir(), "messages"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	_, err = f.WriteString(`{"version":1,"queue":"orders.failed","properties":{},"body":"checked"}` + "\n")
	require.NoError(t, err)
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	i := b.guard(t, operation.Options{}).NewImport(f)
	meant, err := i.Check(f)
	require.NoError(t, err)
	require.Equal(t, 1, meant)
	require.NoError(t, i.Compare(t.Context()))
	_, err = f.WriteString(`{"version":2}` + "\n")
	require.NoError(t, err)
	result, err := i.Publish(t.Context())
	require.NoError(t, err)
	require.NoError(t, i.Unfinished(result, transfer.Result{}))
	assert.Equal(t, []string{"checked"}, b.left(t))
}

// In a queue without a delivery limit, messages that another client requeued lie behind all others before 4.3. The run still
// finds them.
func TestChosenMessagesThatLieBehindOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	limit := map[string]any{}
	if b.VersionAtLeast("4.0") {
		limit["x-delivery-limit"] = -1
	}
	b.Name, b.Pipeline = "others", ""
	b.DeclareQueue(t, b.Name, "quorum", limit)
	for i := range 9 {
		b.Publish(t, "", b.Name, amqp.Publishing{Body: []byte(fmt.Sprint(i))})
	}
	b.has(t, 9)
	r := b.guard(t, operation.Options{Scan: 2, Force: true})
	_, chosen, err := r.Choose(t.Context(), failed.Filter{})
	require.NoError(t, err)
	require.Equal(t, 2, chosen.Total())
	ch, deliveries := b.Consume(t, b.Name, 2)
	for range 2 {
		brokertest.Receive(t, deliveries)
	}
	require.NoError(t, ch.Cancel(b.Name, false))
	require.NoError(t, ch.Nack(2, true, true))
	b.has(t, 9)
	result, err := r.Remove(t.Context(), chosen)
	require.NoError(t, err)
	assert.Equal(t, 2, result.Dropped)
	assert.ElementsMatch(t, []string{"2", "3", "4", "5", "6", "7", "8"}, b.left(t))
}

// A count needs one connection per vhost. A look at the first failed messages needs two more, since it cuts its own.
func TestCountingOverOneConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.park(t, "first")
	b.has(t, 1)
	opened := 0
	target := b.Target
	target.Brokers = func() ([]amqpconn.URI, error) {
		opened++
		return b.Brokers()
	}
	var c operation.Counting
	defer c.Close()
	summaries := c.Named(t.Context(), &target)
	require.Len(t, summaries, 1)
	_, err := c.Count(t.Context(), summaries, true)
	require.NoError(t, err)
	assert.Equal(t, 3, opened)
	require.NotNil(t, summaries[0].Failed)
	assert.Equal(t, 1, *summaries[0].Failed)
	assert.Equal(t, int64(1_764_000_000_000), summaries[0].Oldest.UnixMilli())
	b.has(t, 1)
}

// If the broker closes the connection over the first message, the queue's note says so, and the counts are known.
func TestCountingOfAnUnreadableMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Needs(t, brokertest.Release(">= 4.0"))
	amqp10.Dial(t, b.Broker).To(t, "/queues/orders.failed").Send(t, amqp10.Message{
		ApplicationProperties: amqp10.Map(amqp10.Text("tenant"), amqp10.UUID()), Data: []byte("odd"),
	}.Encode())
	b.has(t, 1)
	var c operation.Counting
	defer c.Close()
	summaries := c.Named(t.Context(), &b.Target)
	_, err := c.Count(t.Context(), summaries, true)
	require.NoError(t, err)
	require.NotNil(t, summaries[0].Failed)
	assert.Equal(t, 1, *summaries[0].Failed)
	assert.Contains(t, summaries[0].Note, "run rabbitmq-retry failed repair")
	b.has(t, 1)
}

// replayTo parks messages and prepares their replay to a queue with a consumer. The function is called when the replay waits
// for refused messages.
func (b *bench) replayTo(t *testing.T, queue string, messages int, awaiting func()) *operation.Replay {
	t.Helper()
	for i := range messages {
		b.park(t, fmt.Sprint(i))
	}
	_, _ = b.Consume(t, queue, 0)
	run := b.guard(t, operation.Options{})
	run.Progress = func(p transfer.Progress) {
		if p.Phase == transfer.Awaiting {
			awaiting()
		}
	}
	return run.NewReplay(queue, 0)
}

// If a replay is stopped while it waits for refused messages, it says that it does not know them, and leaves the rest.
func TestInterruptedWhileAwaitingRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := b.replayTo(t, "work", 30, stop)
	_, err := r.Look(ctx, exhausted)
	require.NoError(t, err)
	result, err := r.Publish(ctx)
	require.ErrorIs(t, err, operation.ErrUnknown)
	assert.Truef(t, result.Interrupted && result.Confirmed == 20 && !r.Stopped, "result %+v", result)
	assert.Len(t, b.left(t), 10)
}

// Messages that fail meanwhile for other reasons do not stop a replay, and are not counted.
func TestOtherFailuresDoNotStopAReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.replayTo(t, "work", 60, func() { b.park(t, "another", "another", "another", "another", "another") })
	r.StopIfBack = 10
	_, err := r.Look(t.Context(), exhausted)
	require.NoError(t, err)
	result, err := r.Publish(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Unfinished(result))
	assert.Truef(t, result.Confirmed == 60 && r.Again == 0, "result %+v", result)
	b.has(t, 10)
}

// A stream never counts its messages, so none of them seems to be missing.
func TestReplayToAStream(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.DeclareQueue(t, "log", "stream", nil)
	b.park(t, "first")
	r := b.guard(t, operation.Options{}).NewReplay("log", 0)
	_, err := r.Look(t.Context(), exhausted)
	require.NoError(t, err)
	result, err := r.Publish(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Unfinished(result))
}

// A slow replay notices that its target has become full, although the first messages had room.
func TestReplayStopsOnTheWay(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		b := newBench(t)
		b.DeclareQueue(t, "small", queueType, map[string]any{
			"x-max-length": 30, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.failed",
		})
		const total = 1000
		for i := range total {
			b.park(t, fmt.Sprint(i))
		}
		r := b.guard(t, operation.Options{}).NewReplay("small", 100)
		r.StopIfBack = 10
		_, err := r.Look(t.Context(), exhausted)
		require.NoError(t, err)
		result, err := r.Publish(t.Context())
		require.NoError(t, err)
		assert.Truef(t, r.Stopped && result.Confirmed > 30 && result.Confirmed < total && r.Again == result.Confirmed-30, "%d back, result %+v", r.Again, result)
		b.has(t, total-30)
	})
}
