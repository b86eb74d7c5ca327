//go:build bench

package benchworker

import (
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

const (
	// samples are how many messages are rejected, one by one.
	samples = 200
	// overheadTarget is for the median, from the rejection to the arrival in the retry queue.
	overheadTarget = 10 * time.Millisecond
)

//nolint:paralleltest // measures, and needs the processors for itself
func TestOverhead(t *testing.T) {
	binary := terraformtest.BuildSidecar(t)
	for queueType := range strings.SplitSeq(*types, ",") {
		t.Run(queueType, func(t *testing.T) {
			p := newPipeline(t, queueType, 1)
			toInbox := p.waits(t, names.Inbox())
			stop := sidecar(binary)(t, p, samples, worker.DefaultPrefetch)
			toRetry := p.waits(t, names.RetryQueue(delay))
			stop()
			t.Logf("from the rejection to the inbox: median %s, one in ten more than %s", middle(toInbox), toInbox[len(toInbox)*9/10])
			t.Logf("from the rejection to the retry queue: median %s, one in ten more than %s", middle(toRetry), toRetry[len(toRetry)*9/10])
			if queueType == topology.Quorum && middle(toRetry) >= overheadTarget {
				t.Errorf("the median is %s, want less than %s", middle(toRetry), overheadTarget)
			}
		})
	}
}

// waits are how long each of some messages took from its rejection to the queue, in order. Nothing else
// is under way then.
func (p *benchPipeline) waits(t *testing.T, queue string) []time.Duration {
	t.Helper()
	ch := p.Channel(t)
	defer func() { _ = ch.Close() }()
	arrivals, err := ch.Consume(queue, "", true, false, false, false, nil)
	require.NoError(t, err)
	consuming := p.Channel(t)
	defer func() { _ = consuming.Close() }()
	work, err := consuming.Consume(p.queues[0], "", false, false, false, false, nil)
	require.NoError(t, err)
	var all []time.Duration
	for range samples {
		p.Publish(t, "", p.queues[0], amqp.Publishing{DeliveryMode: amqp.Persistent, Body: make([]byte, targetSize)})
		d := <-work
		began := time.Now()
		require.NoError(t, d.Reject(false))
		<-arrivals
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all
}

func middle(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }
