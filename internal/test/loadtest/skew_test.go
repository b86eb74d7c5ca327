//go:build load && skew

package loadtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// release is the provider and the sidecar of one release.
type release struct{ provider, sidecar string }

// releases are this release, and the older one that scripts/older-build has built.
func releases(t *testing.T) (this, older release) {
	t.Helper()
	dir := os.Getenv("OLDER")
	require.NotEmpty(t, dir, "OLDER is not set: run make test-skew")
	return release{terraformtest.BuildProvider(t), terraformtest.BuildSidecar(t)}, release{dir, filepath.Join(dir, "rabbitmq-retry")}
}

// terraform runs each release's provider on one configuration and state.
func terraform(t *testing.T, of ...release) []*terraformtest.CLI {
	t.Helper()
	var all []*terraformtest.CLI
	for _, r := range of {
		cli := terraformtest.New(t, r.provider)
		if len(all) > 0 {
			cli.Dir = all[0].Dir
		}
		all = append(all, cli)
	}
	return all
}

func requireEmptyPlan(t *testing.T, cli *terraformtest.CLI) {
	t.Helper()
	printed, code := cli.Exit(t, "plan", "-detailed-exitcode", "-input=false", "-no-color")
	require.Zero(t, code, printed)
}

const skewed = terraformtest.Required + `
locals { vhost = %q }

resource "rabbitmq_retry_pipeline" "orders" {
  name                   = "orders"
  vhost                  = local.vhost
  delays                 = ["1s", "2s"]
  max_age                = "24h"
  retry_on               = ["rejected", "expired"]
  work_queues            = { "orders.created" = { declare = true, max_attempts = 5 } }
  policy_definition_json = jsonencode({ delivery-limit = 100 })
}

resource "rabbitmq_queue" "paid" {
  name  = "orders.paid"
  vhost = local.vhost
}

resource "rabbitmq_retry_attachment" "paid" {
  vhost    = local.vhost
  pipeline = rabbitmq_retry_pipeline.orders.name
  queue    = rabbitmq_queue.paid.name
}

resource "rabbitmq_retry_pipeline" "counted" {
  count       = %d
  name        = "counted"
  vhost       = local.vhost
  engine      = "consumer"
  delays      = ["1s"]
  work_queues = { "counted.work" = { declare = true } }
}

resource "rabbitmq_delayed_exchange" "events" {
  name      = "events"
  vhost     = local.vhost
  max_delay = "1h"
}

resource "rabbitmq_exchange" "events" {
  name      = "shop"
  vhost     = local.vhost
  type      = "topic"
  arguments = { alternate-exchange = "amq.fanout" }
}

resource "rabbitmq_binding" "paid" {
  vhost       = local.vhost
  source      = rabbitmq_exchange.events.name
  destination = rabbitmq_queue.paid.name
  routing_key = "paid.#"
}

resource "rabbitmq_policy" "counted" {
  name       = "length"
  vhost      = local.vhost
  pattern    = "^shop"
  apply_to   = "queues"
  definition = { max-length = 10 }
}

output "worker" {
  value = jsonencode({
    pipelines         = [rabbitmq_retry_pipeline.orders.worker]
    delayed_exchanges = [rabbitmq_delayed_exchange.events.worker]
  })
}
`

// Each row of the guide's table of skew, with this release and an older one.
func TestTableOfSkew(t *testing.T) {
	t.Parallel()
	this, older := releases(t)
	for name, order := range map[string][2]release{"older first": {older, this}, "newer first": {this, older}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, then := order[0], order[1]
			b := brokertest.New(t)
			tf := terraform(t, first, then)
			counted := 0
			if b.VersionAtLeast("4.0") {
				counted = 1
			}
			tf[0].Write(t, "main.tf", fmt.Sprintf(skewed, b.Vhost, counted))
			tf[0].Run(t, applying...)
			requireEmptyPlan(t, tf[0])
			t.Log("the other provider plans nothing")
			requireEmptyPlan(t, tf[1])

			config := tf[0].Run(t, "output", "-raw", "worker")
			file := filepath.Join(t.TempDir(), "worker.json")
			require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
			at := []string{"RABBITMQ_URI=" + b.URI}
			run := func(r release, args ...string) string {
				t.Helper()
				command := exec.CommandContext(t.Context(), r.sidecar, args...)
				command.Env = at
				output, err := command.CombinedOutput()
				require.NoError(t, err, string(output))
				return string(output)
			}
			t.Log("the other sidecar runs the configuration, and both share an inbox")
			run(then, "worker", "--check", "--config", file)
			workers := []*sidecartest.Process{
				sidecartest.StartBinary(t, first.sidecar, at, "--config", file, "--prefetch=1"),
				sidecartest.StartBinary(t, then.sidecar, at, "--config", file, "--prefetch=1"),
			}
			const messages = 20
			ch := b.Channel(t)
			_, deliveries := b.Consume(t, "orders.created", messages)
			for i := range messages {
				b.Publish(t, "", "orders.created", amqp.Publishing{MessageId: fmt.Sprint(i), DeliveryMode: amqp.Persistent})
			}
			// Each message fails three times, here and there.
			failures := map[string]int{}
			for range messages * 3 {
				d := brokertest.Receive(t, deliveries)
				failures[d.MessageId]++
				if failures[d.MessageId] == 3 {
					require.NoError(t, d.Ack(false))
					b.Publish(t, "", "orders.failed", amqp.Publishing{MessageId: d.MessageId, Headers: d.Headers, DeliveryMode: amqp.Persistent})
					continue
				}
				require.Equal(t, int64(failures[d.MessageId]), max(count(d), 1), "attempts of %s", d.MessageId)
				require.NoError(t, d.Reject(false))
			}
			for _, w := range workers {
				require.Zero(t, w.End(t, syscall.SIGTERM), w.Log)
			}
			_ = ch.Close()

			t.Log("each reads the other's files of failed messages")
			export := filepath.Join(t.TempDir(), "failed.jsonl")
			run(first, "failed", "delete", "orders", "--vhost", b.Vhost, "--all", "--yes", "--export", export)
			run(then, "failed", "import", "orders", "--vhost", b.Vhost, "--yes", export)
			again := filepath.Join(t.TempDir(), "failed.jsonl")
			run(first, "failed", "export", "orders", "--vhost", b.Vhost, "--file", again)
			require.Len(t, idsIn(t, again), messages)
			require.ElementsMatch(t, idsIn(t, export), idsIn(t, again))
		})
	}
}

// count is the number of failures that the header says, 0 at first.
func count(d amqp.Delivery) int64 {
	n, _ := d.Headers["retry-count"].(int64)
	return n + 1
}

// idsIn are the ids of the messages in a file.
func idsIn(t *testing.T, file string) (ids []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range bytes.Lines(content) {
		var message struct{ ID string }
		require.NoError(t, json.Unmarshal(line, &message))
		ids = append(ids, message.ID)
	}
	return ids
}

// Two replicas roll to this release and back, with an apply of each provider in between.
func TestRollingBetweenReleasesLosesNothing(t *testing.T) {
	t.Parallel()
	this, older := releases(t)
	l := newLoad(t, "steady")
	tf := terraform(t, this, older)
	file := filepath.Join(t.TempDir(), "worker.json")
	apply := func(cli *terraformtest.CLI, more string) {
		t.Helper()
		cli.Write(t, "main.tf", step{delays: `"1s", "2s"`, workQueues: "steady = {}", more: more}.config(l.Vhost))
		cli.Run(t, applying...)
		require.NoError(t, os.WriteFile(file+".new", []byte(cli.Run(t, "output", "-raw", "worker")), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	apply(tf[1], "max_attempts = 1000")
	replicas := make([]*sidecartest.Process, 2)
	roll := func(to release) {
		t.Helper()
		for i, replica := range replicas {
			if replica != nil {
				require.Zero(t, replica.End(t, syscall.SIGTERM), replica.Log)
			}
			replicas[i] = sidecartest.StartBinary(t, to.sidecar, []string{"RABBITMQ_URI=" + l.URI}, "--config", file)
			l.awaitMore(t, 5)
		}
	}
	l.modes.set(map[string]mode{"steady": rejected})
	l.follow(t)
	l.collectFailed(t, "load.failed")
	stop := l.startPublishing(t)
	roll(older)
	roll(this)
	requireEmptyPlan(t, tf[0])
	apply(tf[0], "max_attempts = 900\nmax_age = \"24h\"")
	l.awaitMore(t, 10)
	requireEmptyPlan(t, tf[1])
	apply(tf[1], "max_attempts = 1000")
	l.awaitMore(t, 10)
	roll(older)
	stop()
	l.drain(t)
	for _, replica := range replicas {
		require.Zero(t, replica.End(t, syscall.SIGTERM), replica.Log)
	}
	l.requireNothingLost(t)
	l.ledger.with(func() { require.Empty(t, l.ledger.failed, "parked") })
}
