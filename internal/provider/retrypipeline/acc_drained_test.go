package retrypipeline_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// A message that was published just before a plan is not counted yet, and keeps its queue nevertheless.
func TestAcc_NothingIsDrainedByOneReading(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	times := acctest.Quick()
	times.Lag = apply.DefaultTimes().Lag
	core := &acctest.Core{Type: resourceType, Times: times, Endpoint: b.Endpoint, Config: map[string]any{
		"name": "orders", "vhost": b.Vhost, "delays": []string{"1h", "2h"},
	}}
	for _, delays := range [][]string{{"1h", "2h"}, {"1h"}} {
		core.Config["delays"] = delays
		if _, err := core.PlanAndApply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const retired = "orders.retry.2h"
	for range 5 {
		acctest.AwaitCount(t, b, retired, 0)
		b.Publish(t, "", retired, persistent("late"))
		for range 2 {
			plan, err := core.Plan(t.Context())
			if err != nil || !plan.Empty() {
				t.Fatalf("the plan removes a queue with a message: %v, %v", plan.After["retired_queues"], err)
			}
		}
		if _, kept := b.Get(t, retired); !kept {
			t.Fatal("the message is gone")
		}
	}
	brokertest.Eventually(t, time.Minute, func() error {
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

// However many pipelines of a vhost have retired queues, a plan waits once.
func TestAcc_PlanOfManyRetiredQueuesWaitsOnce(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t, terraformtest.Settings(t, terraformtest.BuildProvider(t)))
	const pipelines = 25
	var first, second atomic.Int32
	endpoint := tf.Before(t, func(r *http.Request) {
		switch {
		case strings.Contains(r.URL.RawQuery, "messages_dlx"):
			first.Add(1)
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".retry.2s"):
			second.Add(1)
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
	first.Store(0)
	second.Store(0)
	if printed := tf.plan(t); strings.Count(printed, "drained = true") != pipelines {
		t.Errorf("not all queues are removed:\n%s", printed)
	}
	if first.Load() != 1 || second.Load() != pipelines {
		t.Errorf("%d first and %d second readings", first.Load(), second.Load())
	}
}
