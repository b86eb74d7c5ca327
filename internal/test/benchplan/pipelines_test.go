//go:build bench

package benchplan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// config makes the pipelines, each attached to work queues that are there already.
const config = terraformtest.Required + `

variable "pipelines" { type = map(string) }
variable "work_queues" { type = map(map(object({ failed_queue = optional(object({ name = string })) }))) }
variable "delays" { type = list(string) }

resource "rabbitmq_retry_pipeline" "each" {
  for_each = var.pipelines

  name        = each.key
  vhost       = each.value
  delays      = var.delays
  work_queues = var.work_queues[each.key]
}
`

var (
	delays        = []string{"1s", "5s", "30s", "5m", "1h"}
	changedDelays = []string{"1s", "5s", "30s", "5m", "2h"}
)

// vhosts says which pipeline is in which vhost.
func pipelineVhosts(n int, vhosts []string) map[string]string {
	all := make(map[string]string, n)
	for i := range n {
		all[fmt.Sprintf("p%03d", i)] = vhosts[i%len(vhosts)]
	}
	return all
}

// workQueues are those of one pipeline, of which the first ones have failed queues of their own.
func (s scenario) workQueues(name string) map[string]pipeline.WorkQueue {
	queues := map[string]pipeline.WorkQueue{}
	if s.plain {
		return queues
	}
	for i := range max(s.perPipeline, 1) {
		w := pipeline.WorkQueue{Type: topology.Quorum}
		if i < s.failedQueues {
			w.FailedQueue = fmt.Sprintf("failed.%s.%04d", name, i)
		}
		queues[fmt.Sprintf("work.%s.%04d", name, i)] = w
	}
	return queues
}

// configured is work_queues of one pipeline.
func (s scenario) configured(name string) map[string]any {
	queues := map[string]any{}
	for queue, w := range s.workQueues(name) {
		queues[queue] = map[string]any{}
		if w.FailedQueue != "" {
			queues[queue] = map[string]any{"failed_queue": map[string]any{"name": w.FailedQueue}}
		}
	}
	return queues
}

// variables are the configuration's, as a file for the CLI.
func (s scenario) variables(t *testing.T, pipelines map[string]string, delays []string) string {
	t.Helper()
	workQueues := map[string]any{}
	for name := range pipelines {
		workQueues[name] = s.configured(name)
	}
	text, err := json.Marshal(map[string]any{"pipelines": pipelines, "work_queues": workQueues, "delays": delays})
	require.NoError(t, err)
	return string(text)
}

// objects are those of one pipeline.
func (s scenario) objects(t testing.TB, name, vhost string) topology.Topology {
	t.Helper()
	if s.plain {
		return plainObjects(name)
	}
	p := pipeline.Pipeline{
		Name: name, Vhost: vhost, MaxAttempts: len(delays) + 1, RetryOn: []string{pipeline.ReasonRejected},
		QueueType: topology.Quorum, PolicyPriority: pipeline.DefaultPolicyPriority,
		WorkQueues: s.workQueues(name),
	}
	for _, spelling := range delays {
		wait, err := time.ParseDuration(spelling)
		require.NoError(t, err)
		p.Delays = append(p.Delays, pipeline.Delay{Wait: wait, Spelling: spelling})
	}
	return p.Expand()
}

// foreign are the calls that make policies of somebody else's, which match no queue of the pipelines.
func (s scenario) foreign(vhost string) []call {
	var calls []call
	for i := range s.policies {
		calls = append(calls, call{http.MethodPut, api("policies", vhost, fmt.Sprintf("foreign-%03d", i)), map[string]any{
			"pattern": fmt.Sprintf(`^team-%03d\.(orders|refunds)(\.[a-z]+)?$`, i), "apply-to": "queues", "priority": i % 10,
			"definition": map[string]any{"max-length": 1000 + i},
		}})
	}
	return calls
}

// atOnce is how many bare calls are in flight, as many as Terraform has operations.
const atOnce = 10

// call is one write.
type call struct {
	method, path string
	body         any
}

// send sends the calls of ten groups side by side, those of a group one after another, and returns how long all of them took: nothing
// but the writes, on connections that are kept alive.
func send(t testing.TB, b *brokertest.Broker, groups [][]call) time.Duration {
	t.Helper()
	began := time.Now()
	var senders errgroup.Group
	senders.SetLimit(atOnce)
	for _, group := range groups {
		senders.Go(func() error {
			var failed []error
			for _, c := range group {
				failed = append(failed, c.send(b))
			}
			return errors.Join(failed...)
		})
	}
	require.NoError(t, senders.Wait())
	return time.Since(began)
}

func (c call) send(b *brokertest.Broker) error {
	status, answer, err := b.Try(c.method, c.path, c.body)
	gone := c.method == http.MethodDelete && status == http.StatusNotFound
	if err == nil && status >= http.StatusMultipleChoices && !gone {
		err = fmt.Errorf("%s %s: %d %s", c.method, c.path, status, answer)
	}
	return err
}

// creation is the calls that make a topology, in an order in which they succeed.
func creation(vhost string, t topology.Topology) []call {
	var calls []call
	for _, name := range slices.Sorted(maps.Keys(t.Exchanges)) {
		e := t.Exchanges[name]
		body := map[string]any{"type": e.Type, "durable": true, "arguments": set(e.Arguments)}
		calls = append(calls, call{http.MethodPut, api("exchanges", vhost, name), body})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Queues)) {
		calls = append(calls, queueCall(vhost, name, t.Queues[name]))
	}
	for _, b := range t.Bindings {
		body := map[string]any{"routing_key": b.RoutingKey, "arguments": set(b.Arguments)}
		calls = append(calls, call{http.MethodPost, api("bindings", vhost, "e", b.Source, "q", b.Destination), body})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Policies)) {
		policy := t.Policies[name]
		calls = append(calls, call{http.MethodPut, api("policies", vhost, name), map[string]any{
			"pattern": policy.Pattern, "apply-to": policy.ApplyTo, "priority": policy.Priority, "definition": policy.Definition,
		}})
	}
	return calls
}

func queueCall(vhost, name string, q topology.Queue) call {
	arguments := topology.Arguments{"x-queue-type": q.Type}
	maps.Copy(arguments, q.Arguments)
	return call{http.MethodPut, api("queues", vhost, name), map[string]any{"durable": true, "arguments": arguments}}
}

// set is never null: the API takes no arguments for an empty object only.
func set(arguments topology.Arguments) topology.Arguments {
	if arguments == nil {
		return topology.Arguments{}
	}
	return arguments
}

func api(parts ...string) string {
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return "/api/" + strings.Join(parts, "/")
}
