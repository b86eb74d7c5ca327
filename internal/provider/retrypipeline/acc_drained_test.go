package retrypipeline_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A message that was published just before a plan is not in the statistics yet, and keeps its queue nevertheless.
func TestAccEveryRelease_NothingIsDrainedByOneReading(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	for _, queueType := range []string{topology.Quorum, topology.Classic} {
		for _, phase := range []time.Duration{0, 2 * time.Second, 4 * time.Second} { // of the statistics, which are gathered every 5 seconds
			t.Run(fmt.Sprintf("%s, %s", queueType, phase), func(t *testing.T) {
				t.Parallel()
				keepsQueueOfLateMessage(t, queueType, phase)
			})
		}
	}
}

func keepsQueueOfLateMessage(t *testing.T, queueType string, phase time.Duration) {
	t.Helper()
	b := brokertest.New(t)
	times := acctest.Quick()
	times.Lag = acctest.Times().Lag
	core := &acctest.Core{Type: resourceType, Times: times, Endpoint: b.Endpoint, Config: map[string]any{
		"name": "orders", "vhost": b.Vhost, "queue_type": queueType,
	}}
	for _, delays := range [][]string{{"1h", "2h"}, {"1h"}} {
		core.Config["delays"] = delays
		if _, err := core.PlanAndApply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const retired = "orders.retry.2h"
	acctest.AwaitCount(t, b, retired, 0)
	time.Sleep(phase)
	b.Publish(t, "", retired, persistent("late"))
	plan, err := core.Plan(t.Context())
	require.NoError(t, err)
	if late := queueType == topology.Quorum && !counts(t, b, retired); !late && !plan.Empty() {
		t.Error("the plan removes a queue with a message")
	}
	if _, kept := b.Get(t, retired); !kept {
		t.Fatal("the message is gone")
	}
	brokertest.Eventually(t, func() error {
		plan, err := core.Plan(t.Context())
		if err == nil && plan.Empty() {
			err = errors.New("the empty queue is not removed")
		}
		return err
	})
	if err := core.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

// counts reports whether a queue has counted a message. A busy broker lets a quorum queue count too late for any plan.
func counts(t *testing.T, b *brokertest.Broker, queue string) bool {
	t.Helper()
	var queues []struct {
		Name     string `json:"name"`
		Messages int    `json:"messages"`
	}
	b.Call(t, http.MethodGet, b.Path("queues")+"?disable_stats=true&enable_queue_totals=true", nil, &queues)
	for _, q := range queues {
		if q.Name == queue {
			return q.Messages > 0
		}
	}
	return false
}

// However many pipelines of a vhost have retired queues, a plan waits once.
func TestAcc_PlanOfManyRetiredQueuesWaitsOnce(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newReleasedCLI(t)
	const pipelines = 25
	var first, second, each atomic.Int32
	endpoint := tf.Before(t, func(r *http.Request) {
		switch {
		case strings.Contains(r.URL.RawQuery, "messages_dlx"):
			first.Add(1)
		case strings.Contains(r.URL.RawQuery, "enable_queue_totals"):
			second.Add(1)
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".retry.2s"):
			each.Add(1)
		}
	})
	config := func(delays string) string {
		return fmt.Sprintf("provider \"rabbitmq\" {\n  endpoint = %q\n}\nresource %q \"many\" {\n  count = %d\n  vhost = %q\n  name = \"p${count.index}\"\n  delays = [%s]\n}\n",
			endpoint, resourceType, pipelines, tf.Vhost, delays)
	}
	for _, delays := range []string{`"1s", "2s"`, `"1s"`} {
		tf.configure(t, config(delays))
		tf.apply(t)
	}
	for i := range pipelines {
		acctest.AwaitCount(t, tf.Broker, fmt.Sprintf("p%d.retry.2s", i), 0)
	}
	// A busy broker may not report on each queue at once.
	brokertest.Eventually(t, func() error {
		first.Store(0)
		second.Store(0)
		each.Store(0)
		if printed := tf.plan(t); strings.Count(printed, "drained = true") != pipelines {
			return fmt.Errorf("not all queues are removed:\n%s", printed)
		}
		return nil
	})
	if first.Load() != 1 || second.Load() != 1 || each.Load() != pipelines {
		t.Errorf("%d first and %d second readings, %d of single queues", first.Load(), second.Load(), each.Load())
	}
}
