package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// parkIn puts a message into a team's failed queue as a worker does.
func (o orders) parkIn(t *testing.T, queue, id string) {
	t.Helper()
	message := parked("exhausted", id)
	message.Headers["dead-letter-detour"], message.Headers["CC"] = "refused", []any{"failed:orders.created"}
	o.Publish(t, "", queue, message)
}

// declaring has a worker's configuration with these failed queues, which the pipeline declares.
func (o orders) declaring(t *testing.T, queues ...string) orders {
	t.Helper()
	worker := pipeline.Worker{
		Version: pipeline.WorkerVersion, Name: "orders", Vhost: o.Vhost, Delays: []string{"5s"}, MaxAttempts: 2,
		RetryOn: []string{pipeline.ReasonRejected}, WorkQueues: map[string]pipeline.WorkerQueue{},
	}
	for i, queue := range queues {
		worker.WorkQueues[fmt.Sprint("of ", queue, i)] = pipeline.WorkerQueue{FailedQueue: pipeline.WorkerFailedQueue{Name: queue, Declare: true}}
	}
	config, err := json.Marshal(map[string]any{"pipelines": []pipeline.Worker{worker}})
	require.NoError(t, err)
	o.env = with(o.env, cli.EnvConfigJSON, string(config))
	return o
}

// A team can handle its own failed queue with only the permissions for that queue.
func TestFailedQueueOfATeam(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		o := newOrders(t, queueType).declaring(t, "orders.given-up")
		o.DeclareQueue(t, "orders.given-up", queueType, nil)
		permissions := pipeline.FailedQueuePermissions("orders", "orders.given-up")
		team := o.as(t, permissions.Write, permissions.Read)
		for _, id := range []string{"order-1", "order-2", "order-3"} {
			o.parkIn(t, "orders.given-up", id)
		}
		const of = " orders --queue orders.given-up"
		out, errs := team.run(t, exitOK, "failed list"+of)
		contains(t, out, "3      exhausted  orders.created")
		contains(t, errs, "3 messages in orders.given-up; all put back.")
		out, _ = team.run(t, exitOK, "failed list"+of+" -o id")
		out, _ = team.run(t, exitOK, "failed show"+of+" --raw "+strings.Fields(out)[0])
		assert.Equal(t, string(parked("exhausted", "order-1").Body), out)
		team.says(t, exitOK, "failed replay"+of+" --limit 1 --yes", "replayed 1 of 3 to orders.created")
		d, ok := o.Get(t, "orders.created")
		assert.Truef(t, ok && d.Exchange == "orders.return" && d.RoutingKey == "order.created.eu" && d.Headers["dead-letter-detour"] == nil &&
			d.Headers["retry-count"] == nil, "delivery %+v", d)
		file := filepath.Join(t.TempDir(), "given-up.jsonl")
		team.run(t, exitOK, "failed delete"+of+" --all --yes --export "+file)
		o.run(t, exitOK, "failed import"+of+" --yes "+file)
		assert.Equal(t, 2, o.left(t, "orders.given-up"))

		// Without the pipeline's name, messages name their work queue themselves.
		o.run(t, exitOK, "failed replay --queue orders.given-up --all --yes")
		d, ok = o.Get(t, "orders.created")
		assert.Truef(t, ok && d.Exchange == "orders.return" && d.RoutingKey == "order.created.eu", "delivery %+v", d)
		o.says(t, exitUsage, "failed replay"+of+" --all --yes --to orders.inbox", "one of the pipeline's own queues")
		o.says(t, exitUsage, "failed list orders --queue orders.inbox", "has no failed messages")
	})
}

// Two teams share a pipeline. With the permissions for its own failed queue, each team has no access to the other's.
func TestTeamsCannotTouchEachOthersFailedQueues(t *testing.T) {
	t.Parallel()
	queues := []string{"created.failures", "paid.failures"}
	o := newOrders(t, "quorum").declaring(t, queues...)
	ids := map[string]string{}
	for _, queue := range queues {
		o.DeclareQueue(t, queue, "quorum", nil)
		o.parkIn(t, queue, queue)
		out, _ := o.run(t, exitOK, "failed list orders --queue "+queue+" -o id")
		ids[queue] = strings.TrimSpace(out)
	}
	for i, queue := range queues {
		permissions := pipeline.FailedQueuePermissions("orders", queue)
		team, others := o.as(t, permissions.Write, permissions.Read), queues[1-i]
		for _, command := range []string{
			"list orders", "show orders " + ids[others], "export orders", "replay orders --all --yes", "delete orders --all --discard --yes",
		} {
			team.says(t, exitError, "failed "+command+" --queue "+others, "ACCESS_REFUSED", others)
		}
		assert.Equal(t, 1, o.left(t, others), others)
		for _, command := range []string{"list orders", "show orders " + ids[queue], "export orders", "replay orders --all --yes"} {
			team.run(t, exitOK, "failed "+command+" --queue "+queue)
		}
		d, _ := o.Get(t, "orders.created")
		assert.Equal(t, queue, d.MessageId)
		o.parkIn(t, queue, queue)
		team.run(t, exitOK, "failed delete orders --all --discard --yes --queue "+queue)
		o.parkIn(t, queue, queue)
	}
}

// The worker's configuration names the work queues' failed queues.
func TestStatusOfTeams(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	for _, queue := range []string{"orders.given-up", "orders.retry.5s", "orders.retry.0.refused"} {
		o.DeclareQueue(t, queue, "quorum", nil)
	}
	o.parkIn(t, "orders.given-up", "order-1")
	out, _ := o.declaring(t, "orders.given-up", "orders.given-up").run(t, exitFound, "status orders")
	contains(t, out, "orders.retry.0.refused  0", "orders.failed           0", "orders.given-up         1")
	assert.Equal(t, 1, strings.Count(out, "orders.given-up"), out)
}

// If a pipeline does not declare the failed queue, looks are limited as for any other queue. If it declares the queue, looks
// are unlimited.
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
			contains(t, errs, "can count against its delivery limit")
			if refused = code != exitOK; refused {
				contains(t, errs, `If pipeline "orders" declares the queue, --force is enough`)
			}
		}
		knowing.run(t, exitOK, "failed list orders --queue declared")
		o.run(t, exitOK, "failed list orders --queue declared --force")
	}
	for _, queue := range []string{"theirs", "declared"} {
		o.holds(t, queue, 3)
	}
}
