//go:build interop

package interop

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// After a retry of the pipeline, Celery's self.retry publishes the task to the pipeline's return exchange, without the
// pipeline's headers.
func TestCelerySelfRetry(t *testing.T) {
	t.Parallel()
	if output, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import celery").CombinedOutput(); err != nil {
		t.Fatalf("this needs Celery (Debian: apt-get install python3-celery): %s", output)
	}
	const wait = time.Second
	b := brokertest.NewNamed(t, "celery")
	config := fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "jobs" {
  name        = "jobs"
  vhost       = %q
  delays      = [%q]
  work_queues = { celery = { declare = true, type = "classic" } }
}
output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.jobs.worker] }) }`, b.Vhost, wait)
	apply(t, b, resource.TestStep{Config: config}, func(startSidecar func()) {
		startSidecar()
		runs := startProgram(t, b, contents(t, "tasks.py"), "python")
		var last time.Time
		for i, want := range []string{"from the default exchange, 0 retries", "from jobs.return, 0 retries", "from jobs.return, 1 retries"} {
			run := brokertest.Receive(t, runs)
			for !strings.HasSuffix(run.text, " retries") { // what Celery says about itself
				run = brokertest.Receive(t, runs)
			}
			require.Equal(t, want, run.text)
			require.True(t, i == 0 || run.at.Sub(last) >= wait-50*time.Millisecond, "run %d came after %s", i, run.at.Sub(last))
			last = run.at
		}
		for ended := false; !ended; { // it stops with its last task
			ended = brokertest.Receive(t, runs) == printed{}
		}
		_, parked := b.Get(t, "jobs.failed")
		require.False(t, parked)
		ch := b.Channel(t) // or the pipeline would not delete the queue
		require.NoError(t, ch.QueueUnbind("celery", "celery", "celery", nil))
		_, err := ch.QueuePurge("celery", false) // Celery stops before it acknowledges
		require.NoError(t, err)
	})
}
