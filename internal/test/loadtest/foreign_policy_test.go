//go:build load

package loadtest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// unusedFor is how long a queue may be unused before the organisation's policy deletes it.
const unusedFor = 4 * time.Second

// organisation is a policy for all queues that would delete, expire, truncate and re-route what the
// pipeline's own queues hold, if it ever applied to one of them.
var organisation = map[string]any{
	"pattern": ".*", "apply-to": "queues", "priority": 1,
	"definition": map[string]any{
		"expires": unusedFor.Milliseconds(), "message-ttl": 500, "max-length": 1,
		"dead-letter-exchange": "nowhere", "dead-letter-routing-key": "nobody",
	},
}

// givenUp has the pipeline's policy drop all of these keys.
const givenUp = `policy_definition_json = jsonencode({
    "expires" = null, "message-ttl" = null, "max-length" = null, "dead-letter-exchange" = null, "dead-letter-routing-key" = null
  })`

// A policy for all queues never gets at what the pipeline holds: not while it is created, not when its last
// work queue is released, and not while it is destroyed, whether that is refused or not.
func TestForeignPolicyUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	l := newLoad(t, "steady", "late")
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	worker := &sidecar{uri: l.URI, dir: t.TempDir()}
	configure := func(workQueues string) {
		tf.Write(t, "main.tf", step{delays: `"0s", "1s", "6s"`, workQueues: workQueues, more: givenUp}.config(l.Vhost))
	}

	l.modes.set(map[string]mode{"steady": draining, "late": draining}) // their consumers keep both from expiring
	l.follow(t)
	l.Request(t, http.MethodPut, l.Path("policies", "organisation"), organisation)
	configure("steady = {}, late = {}")
	tf.Run(t, applying...)
	worker.restart(t, tf.Run(t, "output", "-raw", "worker"))
	l.modes.set(map[string]mode{"steady": rejected, "late": rejected})
	stop := l.startPublishing(t)
	l.awaitMore(t, 10)

	if _, err := tf.Try(t.Context(), "destroy", "-auto-approve", "-input=false", "-no-color"); err == nil || !strings.Contains(err.Error(), "would lose messages") {
		t.Errorf("destroy amid the load: %v", err)
	}
	if plan := tf.Run(t, "plan", "-input=false", "-no-color"); !strings.Contains(plan, "without changing any real infrastructure") {
		t.Errorf("the refused destroy changed something:\n%s", plan) // Terraform alone has dropped the outputs
	}
	l.awaitMore(t, 5)

	l.release(t, tf, worker, "late", configure, "steady = {}")
	l.awaitMore(t, 5)
	stop() // before no queue is left to publish to
	l.modes.set(map[string]mode{"steady": draining})
	l.settleIn(t, "load.failed")
	configure("")
	tf.Run(t, applying...)
	l.requireCovered(t)

	l.collectFailed(t, "load.failed")
	l.drain(t)
	worker.stop(t)
	l.modes.set(map[string]mode{}) // consumers would hold up the destroy
	l.follow(t)
	tf.Run(t, "destroy", "-auto-approve", "-input=false", "-no-color")
	l.requireNothingLost(t)
}

// release drains a work queue and takes it out of the pipeline, while the others go on.
func (l *load) release(t *testing.T, tf *terraformtest.CLI, worker *sidecar, queue string, configure func(string), rest string) {
	t.Helper()
	modes := maps.Clone(l.modes.of)
	modes[queue] = draining
	l.modes.set(modes)
	l.awaitMore(t, 20) // longer than the delays
	configure(rest)
	tf.Run(t, applying...)
	worker.restart(t, tf.Run(t, "output", "-raw", "worker"))
}

// settleIn waits until everything that is not processed is parked in the queue.
func (l *load) settleIn(t *testing.T, queue string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		holding := l.holding(t)
		if missing := len(l.ledger.missing()); holding[queue] == missing && len(holding) <= 1 {
			return nil
		}
		return fmt.Errorf("there are still messages: %v", holding)
	})
}

// requireCovered leaves the pipeline's queues unused for longer than the organisation lets queues be, and
// requires them and what is parked to be there.
func (l *load) requireCovered(t *testing.T) {
	t.Helper()
	parked := len(l.ledger.missing())
	time.Sleep(2 * unusedFor) // nothing happens: that is the point
	if held := l.holding(t)["load.failed"]; held != parked || parked == 0 {
		t.Errorf("%d messages are parked, want %d and more than none", held, parked)
	}
	var queues []struct{ Name, Policy string }
	l.Call(t, http.MethodGet, l.Path("queues"), nil, &queues)
	found := map[string]string{}
	for _, q := range queues {
		found[q.Name] = q.Policy
	}
	for _, own := range []string{"load.failed", "load.inbox", "load.retry.1s", "load.retry.6s"} {
		if found[own] != "retry/load/queues" {
			t.Errorf("%s has the policy %q; there are %v", own, found[own], slices.Sorted(maps.Keys(found)))
		}
	}
}
