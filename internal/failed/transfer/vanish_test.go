package transfer_test

import (
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// soon is how long a run takes at most that finds out that messages have vanished.
var soon = brokertest.Slow(6 * time.Second)

// purge takes away what nobody holds.
func (b *bench) purge(t *testing.T) {
	t.Helper()
	ch := b.Channel(t)
	defer func() { _ = ch.Close() }()
	if _, err := ch.QueuePurge(source, false); err != nil {
		t.Error(err)
	}
}

// Somebody purges the queue while a run goes over it: it ends soon, and says how many messages did not come.
func TestPurgedMeanwhile(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		b.fill(t, numbered("m", 3000)...)
		seen := 0
		var purged time.Time
		result, err := transfer.Run(t.Context(), b.Queue, transfer.Job{
			Publishes: true,
			Decide: func(e *failed.Entry) transfer.Verdict {
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
