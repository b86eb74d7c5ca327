//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// TestWorkerDuringAlarms has the broker accept nothing while the worker has messages in flight: it waits, goes on when
// the alarm clears, and ends on SIGTERM within its grace time. Nothing is lost, and nothing comes twice that it could finish.
//
//nolint:paralleltest // blocks whoever publishes
func TestWorkerDuringAlarms(t *testing.T) {
	for _, alarm := range []struct {
		name       string
		set, clear []string
	}{
		{
			"memory",
			[]string{"set_vm_memory_high_watermark", lowWatermark},
			[]string{"set_vm_memory_high_watermark", highWatermark},
		},
		{"disk", []string{"set_disk_free_limit", "1000000GB"}, []string{"set_disk_free_limit", "50MB"}},
	} {
		t.Run(alarm.name, func(t *testing.T) {
			c := newChaos(t, "worker")
			worker := c.replicas[0]
			ctl := func(arguments []string) {
				t.Helper()
				require.NoError(t, c.nodes[0].ctl(context.WithoutCancel(t.Context()), arguments...))
			}
			await := func(text string, times int) {
				t.Helper()
				brokertest.Eventually(t, func() error {
					if n := worker.count(text); n < times {
						return fmt.Errorf("%d lines %q, want %d:\n%s", n, text, times, worker.end())
					}
					return nil
				})
			}
			t.Cleanup(func() { ctl(alarm.clear) })
			stopConsumers, stopProducers := c.startConsumers(t), c.startProducers(t, 200)
			pause(t.Context().Done(), 3*time.Second)
			ctl(alarm.set)
			await("the broker accepts no messages", 1)
			pause(t.Context().Done(), 5*time.Second) // longer than what is under way takes
			ctl(alarm.clear)
			await("the broker accepts messages again", 1)
			pause(t.Context().Done(), 3*time.Second)
			before := c.ledger.balance().duplicated

			ctl(alarm.set)
			await("the broker accepts no messages", 2)
			asked := time.Now()
			if err := worker.stop(t); err != nil {
				t.Error(err)
			}
			t.Logf("RabbitMQ %s: ended %s after SIGTERM", c.Version, time.Since(asked).Round(100*time.Millisecond))
			require.NoError(t, worker.start(t))
			await("the broker accepts no messages", 3)
			ctl(alarm.clear)
			await("the broker accepts messages again", 2)
			stopProducers()
			c.drain(t, 10*time.Second, drainTime)
			stopConsumers()
			c.report(t)
			// What was on the wire when the broker stopped reading is read after the alarm, and delivered again as well.
			after := c.ledger.balance().duplicated
			if unfinished := worker.count("still in flight") > 0; before > 0 || after > 0 && !unfinished {
				t.Errorf("%d messages came twice, and %d once the worker was stopped", before, after)
			}
		})
	}
}
