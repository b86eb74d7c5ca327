package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// parkIn puts a message into a team's failed queue as a worker does.
func (o orders) parkIn(t *testing.T, queue, id string) {
	t.Helper()
	o.Publish(t, "", queue, amqp.Publishing{MessageId: id, Body: []byte(id), Headers: amqp.Table{
		"dead-letter-reason": "exhausted", "dead-letter-at": time.Now().UnixMilli(), "retry-queue": "orders.created", "retry-pipeline": "orders",
		"retry-exchange": "shop", "retry-routing-key": "order.created.eu", "retry-count": int64(4), "retry-publish-id": id,
		"dead-letter-detour": "refused", "CC": []any{"failed:orders.created"},
	}})
}

// declaring knows, by the worker's configuration, that the pipeline declares these failed queues.
func (o orders) declaring(t *testing.T, queues ...string) orders {
	t.Helper()
	worker := pipeline.Worker{
		Version: pipeline.WorkerVersion, Name: "orders", Vhost: o.Vhost, Delays: []string{"5s"}, MaxAttempts: 2,
		RetryOn: []string{pipeline.ReasonRejected}, WorkQueues: map[string]pipeline.WorkerQueue{},
	}
	for _, queue := range queues {
		worker.WorkQueues["of "+queue] = pipeline.WorkerQueue{FailedQueue: pipeline.WorkerFailedQueue{Name: queue, Declare: true}}
	}
	config, err := json.Marshal(map[string]any{"pipelines": []pipeline.Worker{worker}})
	require.NoError(t, err)
	o.env = with(o.env, cli.EnvConfigJSON, string(config))
	return o
}

// A team looks after its own failed queue with the permissions for that alone.
func TestFailedQueueOfATeam(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"quorum", "classic"} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			o := newOrders(t, queueType).declaring(t, "orders.given-up")
			o.DeclareQueue(t, "orders.given-up", queueType, nil)
			permissions := pipeline.FailedQueuePermissions("orders", "orders.given-up")
			team := o.as(t, permissions.Write, permissions.Read)
			for _, id := range []string{"order-1", "order-2", "order-3"} {
				o.parkIn(t, "orders.given-up", id)
			}
			of := []string{"orders", "--queue", "orders.given-up"}
			failed := func(command string, more ...string) []string {
				return append(append([]string{"failed", command}, of...), more...)
			}
			out, errs := team.run(t, exitOK, failed("list")...)
			contains(t, out, "3      exhausted  orders.created")
			contains(t, errs, "3 messages in orders.given-up; all put back.")
			out, _ = team.run(t, exitOK, failed("list", "-o", "id")...)
			id := strings.Fields(out)[0]
			out, _ = team.run(t, exitOK, "failed", "show", "orders", id, "--queue", "orders.given-up", "--raw")
			if out != "order-1" {
				t.Errorf("body %q", out)
			}
			_, errs = team.run(t, exitOK, failed("replay", "--limit", "1", "--yes")...)
			contains(t, errs, "replayed 1 of 3 to orders.created")
			d, ok := o.Get(t, "orders.created")
			if !ok || d.Exchange != "orders.return" || d.RoutingKey != "order.created.eu" || d.Headers["dead-letter-detour"] != nil || d.Headers["retry-count"] != nil {
				t.Errorf("delivery %+v", d)
			}
			file := filepath.Join(t.TempDir(), "given-up.jsonl")
			team.run(t, exitOK, failed("delete", "--all", "--export", file, "--yes")...)
			o.run(t, exitOK, "failed", "import", "orders", file, "--queue", "orders.given-up", "--yes")
			if left := o.left(t, "orders.given-up"); left != 2 {
				t.Errorf("%d messages after the import", left)
			}

			// Without the pipeline's name, messages say where they belong.
			o.run(t, exitOK, "failed", "replay", "--queue", "orders.given-up", "--all", "--yes")
			if d, ok := o.Get(t, "orders.created"); !ok || d.Exchange != "orders.return" || d.RoutingKey != "order.created.eu" {
				t.Errorf("delivery %+v", d)
			}
			_, errs = o.run(t, exitUsage, failed("replay", "--all", "--yes", "--to", "orders.inbox")...)
			contains(t, errs, "one of the pipeline's own queues")
			_, errs = o.run(t, exitUsage, "failed", "list", "orders", "--queue", "orders.inbox")
			contains(t, errs, "has no failed messages")
		})
	}
}

// Two teams share a pipeline. With the permissions for its own failed queue, neither can do anything with the other's.
func TestTeamsCannotTouchEachOthersFailedQueues(t *testing.T) {
	t.Parallel()
	queues := []string{"created.failures", "paid.failures"}
	o := newOrders(t, "quorum").declaring(t, queues...)
	ids := map[string]string{}
	for _, queue := range queues {
		o.DeclareQueue(t, queue, "quorum", nil)
		o.parkIn(t, queue, queue)
		out, _ := o.run(t, exitOK, "failed", "list", "orders", "--queue", queue, "-o", "id")
		ids[queue] = strings.TrimSpace(out)
	}
	for i, queue := range queues {
		permissions := pipeline.FailedQueuePermissions("orders", queue)
		team, others := o.as(t, permissions.Write, permissions.Read), queues[1-i]
		commands := func(queue string) map[string][]string {
			return map[string][]string{
				"list":   {"list", "orders"},
				"show":   {"show", "orders", ids[queue]},
				"export": {"export", "orders"},
				"replay": {"replay", "orders", "--all", "--yes"},
				"delete": {"delete", "orders", "--all", "--discard", "--yes"},
			}
		}
		run := func(queue string, want int, command string) (string, string) {
			return team.run(t, want, append(append([]string{"failed"}, commands(queue)[command]...), "--queue", queue)...)
		}
		for command := range commands(others) {
			_, errs := run(others, exitError, command)
			contains(t, errs, "ACCESS_REFUSED", others)
		}
		if left := o.left(t, others); left != 1 {
			t.Errorf("%s has %d messages", others, left)
		}
		for _, command := range []string{"list", "show", "export", "replay"} {
			run(queue, exitOK, command)
		}
		if d, ok := o.Get(t, "orders.created"); !ok || d.MessageId != queue {
			t.Errorf("replayed %+v", d)
		}
		o.parkIn(t, queue, queue)
		run(queue, exitOK, "delete")
		o.parkIn(t, queue, queue)
	}
}

// The worker's configuration knows the failed queues of work queues.
func TestStatusOfTeams(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	for _, queue := range []string{"orders.given-up", "orders.retry.5s", "orders.retry.0.refused"} {
		o.DeclareQueue(t, queue, "quorum", nil)
	}
	o.parkIn(t, "orders.given-up", "order-1")
	config := filepath.Join(t.TempDir(), "worker.json")
	if err := os.WriteFile(config, []byte(`{"pipelines":[{"version":1,"name":"orders","vhost":"`+o.Vhost+`","delays":["5s"],"max_attempts":2,`+
		`"work_queues":{"orders.created":{"failed_queue":{"name":"orders.given-up"}},"orders.paid":{"failed_queue":{"name":"orders.given-up"}}}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := o.run(t, exitFound, "status", "orders", "--config", config)
	contains(t, out, "orders.retry.0.refused  0", "orders.failed           0", "orders.given-up         1")
	if strings.Count(out, "orders.given-up") != 1 {
		t.Error(out)
	}
}

// A queue of a pipeline that it may not declare is looked at as carefully as anybody else's, and one that it does declare as often
// as anybody likes.
func TestLooksAtFailedQueuesOfTeams(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.DeclareQueue(t, "theirs", "quorum", nil)
	o.DeclareQueue(t, "declared", "quorum", map[string]any{"x-delivery-limit": 1_000_000})
	knowing := o.declaring(t, "declared")
	permissions := pipeline.FailedQueuePermissions("orders", "theirs")
	team := o.as(t, permissions.Write, permissions.Read)
	for _, queue := range []string{"theirs", "declared"} {
		for i := range 3 {
			o.parkIn(t, queue, fmt.Sprint(i))
		}
	}
	refused := false
	for range 30 {
		if !refused {
			code, _, errs := execute(t.Context(), team.env, "failed", "list", "orders", "--queue", "theirs", "--vhost", o.Vhost)
			contains(t, errs, "may count against its delivery limit")
			if refused = code != exitOK; refused {
				contains(t, errs, `--force alone is enough if pipeline "orders" declares the queue`)
			}
		}
		knowing.run(t, exitOK, "failed", "list", "orders", "--queue", "declared")
		o.run(t, exitOK, "failed", "list", "orders", "--queue", "declared", "--force")
	}
	for _, queue := range []string{"theirs", "declared"} {
		brokertest.Eventually(t, func() error { return o.has(t, queue, 3) })
	}
}
