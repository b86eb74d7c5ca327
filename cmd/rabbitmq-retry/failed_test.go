package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// orders is the part of a pipeline that the commands need.
type orders struct {
	*brokertest.Broker
	env map[string]string
}

func newOrders(t *testing.T, queueType string) orders {
	t.Helper()
	o := orders{Broker: brokertest.New(t)}
	o.env = map[string]string{cli.EnvURI: o.URI}
	ch := o.Channel(t)
	for _, queue := range []string{"orders.failed", "orders.inbox", "orders.created"} {
		o.DeclareQueue(t, queue, queueType, nil)
	}
	for _, err := range []error{
		ch.ExchangeDeclare("orders.dlx", "fanout", true, false, false, false, nil),
		ch.ExchangeDeclare("orders.return", "direct", true, false, false, false, amqp.Table{"alternate-exchange": "orders.dlx"}),
		ch.QueueBind("orders.inbox", "", "orders.dlx", false, nil),
		ch.QueueBind("orders.created", "return:orders.created", "orders.return", false, nil),
	} {
		require.NoError(t, err)
	}
	return o
}

// park puts a message into the failed queue as a worker does.
func (o orders) park(t *testing.T, reason, id string) {
	t.Helper()
	o.Publish(t, "", "orders.failed", parked(reason, id))
}

func parked(reason, id string) amqp.Publishing {
	return amqp.Publishing{MessageId: id, Body: []byte(`{"id":"` + id + `"}`), Headers: amqp.Table{
		"dead-letter-reason": reason, "dead-letter-at": time.Now().UnixMilli(), "retry-queue": "orders.created", "retry-pipeline": "orders",
		"retry-exchange": "shop", "retry-routing-key": "order.created.eu", "retry-count": int64(4), "retry-max-attempts": int64(4),
		"retry-publish-id": id,
	}}
}

// run executes a command line, with further arguments, and fails unless its exit code is this one.
func (o orders) run(t *testing.T, code int, command string, more ...string) (stdout, stderr string) {
	t.Helper()
	args := append(append(strings.Fields(command), more...), "--vhost", o.Vhost)
	got, stdout, stderr := execute(t.Context(), o.env, args...)
	assert.Equalf(t, code, got, "%q\n%s%s", args, stdout, stderr)
	return stdout, stderr
}

// says runs a command line, and fails unless stderr has all of these texts.
func (o orders) says(t *testing.T, code int, command string, want ...string) {
	t.Helper()
	_, stderr := o.run(t, code, command)
	contains(t, stderr, want...)
}

// prints runs a command line, and fails unless stdout has all of these texts.
func (o orders) prints(t *testing.T, code int, command string, want ...string) {
	t.Helper()
	stdout, _ := o.run(t, code, command)
	contains(t, stdout, want...)
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		assert.Contains(t, text, part)
	}
}

func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		assert.NotContains(t, text, part)
	}
}

// In an incident, an operator lists failed messages, shows one in full, replays one, and then the others.
func TestIncident(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		o := newOrders(t, queueType)
		for i := range 5 {
			o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
		}
		o.park(t, "unrecoverable", "order-9")

		out, errs := o.run(t, exitOK, "failed list orders")
		contains(t, out, "COUNT  REASON         QUEUE           ERROR", "5      exhausted      orders.created  -")
		contains(t, errs, "6 messages in orders.failed; all put back. --messages lists them with their ids.")

		out, _ = o.run(t, exitOK, "failed list orders --reason unrecoverable -o id")
		id := strings.TrimSpace(out)
		o.prints(t, exitOK, "failed show orders "+id[:8], "unrecoverable", "order.created.eu", "4/4", `"id": "order-9"`)
		out, _ = o.run(t, exitOK, "failed show orders "+id+" --raw")
		assert.Equal(t, string(parked("unrecoverable", "order-9").Body), out)

		o.Consume(t, "orders.inbox", 0)
		o.says(t, exitOK, "failed replay orders --reason exhausted --limit 1 --yes --wait=10ms",
			"replayed 1 of 5 to orders.created (replay-id ", "After 10ms: 0 back in orders.failed.")
		d, ok := o.Get(t, "orders.created")
		assert.Truef(t, ok && d.RoutingKey == "order.created.eu" && d.Headers["replay-count"] == int64(1) &&
			d.Headers["dead-letter-reason"] == nil, "delivery %+v", d)
		_, errs = o.run(t, exitOK, "failed redrive orders --reason exhausted --yes")
		contains(t, errs, "replayed 4 of 4 to orders.created")
		var record struct {
			Command, Queue, User string
			Counts               map[string]int
		}
		line := errs[strings.LastIndex(errs, "\n{")+1:]
		err := json.Unmarshal([]byte(line), &record)
		assert.Truef(t, err == nil && record.Counts["replayed"] == 4 && record.User == o.Username, "record %s: %v", line, err)
		o.prints(t, exitOK, "status orders",
			"orders.inbox    0      1          -", "orders.retry.*  ?      ?          not counted", "orders.failed   1      0")
	})
}

// The ids or the lines of a list select the messages to replay.
func TestReplayIDs(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	for i := range 3 {
		o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
	}
	out, _ := o.run(t, exitOK, "failed list orders --message-id order-1 --message-id order-2 --messages -o jsonl")
	o.says(t, exitOK, "failed replay orders --ids "+write(t, out)+" --dry-run", "would replay 2 messages to orders.created")
	o.says(t, exitUsage, "failed replay orders --ids "+write(t, out), "write --yes")
	o.run(t, exitOK, "failed replay orders --ids "+write(t, out)+" --yes")
	for _, want := range []string{"order-1", "order-2"} {
		d, _ := o.Get(t, "orders.created")
		assert.Equal(t, want, d.MessageId)
	}
}

// Errors name the missing thing.
func TestFailedTexts(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	o.says(t, exitError, "failed list invoices",
		`queue "invoices.failed" does not exist in this vhost`, `is there a pipeline "invoices"?`, "write --queue invoices.delay.unrouted")
	o.says(t, exitError, "failed list --queue nosuch", `queue "nosuch" does not exist in this vhost "`+o.Vhost+`"; correct --queue or --vhost`)
	o.says(t, exitError, "failed list orders --queue nosuch", `"; correct --queue or --vhost`)
	o.says(t, exitError, "failed show orders 57", "0 of 1 message have an id that begins with 57 (at least 4 digits), or this message-id; failed list --messages shows both")
	o.prints(t, exitOK, "failed list orders -o json", `"messages": 1`)
	refuses(t, exitError, o.env, []string{"failed", "list", "orders", "--vhost", "nosuch"},
		`if the vhost is not "nosuch", write --vhost without percent-encoding, such as --vhost /, and otherwise give the user permissions in it`)
	refuses(t, exitError, o.env, []string{"status", "--endpoint", o.Endpoint, "--vhost", "nosuch"},
		"read vhost \"nosuch\" by the management API (--vhost, --endpoint): it does not exist, or the user has no permissions in it")
	o.says(t, exitFound, "status --queue nosuch", `queue "nosuch" in vhost "`+o.Vhost+`": does not exist: are name and vhost right?`)
	o.says(t, exitUsage, "status nosuch --endpoint "+o.Endpoint, `there is no pipeline or delayed exchange "nosuch" in the vhost "`+o.Vhost+`": correct its name or --vhost`)

	for name, test := range map[string]struct {
		args, want string
	}{
		"no pipeline": {"failed list", "which pipeline or delayed exchange? Write its name, or --queue; rabbitmq-retry status with --config or --endpoint shows all"},
		"format":      {"failed list orders -o xml", `--output "xml": must be one of table, json, jsonl, id`},
		"no time":     {"failed list orders --since 1h --until 2h", "--since 1h: must be earlier than the end, 2h"},
		"no age":      {"failed replay orders --since 1h --older-than 2h --yes", "--since 1h: must be earlier than the end, 2h"},
		"time":        {"failed list orders --since yesterday", `--since "yesterday": must be a time`},
		"zone":        {"failed list orders --since 2026-11-22T01:00:00+24:00", `--since "2026-11-22T01:00:00+24:00": its zone must be less than 24 hours from UTC`},
		"rate":        {"failed replay orders --all --rate fast", `--rate "fast": must be messages a second`},
		"id":          {"failed replay orders --ids " + write(t, `{"id":"57f4"}`), `--ids, line 1: "57f4" is not an id`},
		"column":      {"failed list orders --group-by color", `--group-by "color"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.says(t, exitUsage, test.args, test.want)
		})
	}
}

func TestListOfNothing(t *testing.T) {
	t.Parallel()
	newOrders(t, "classic").prints(t, exitOK, "failed list orders -o json", `"groups": []`, `"rows": []`)
}

// A wait takes as long as the pipeline retries, and says which outcome it does not know.
func TestReplayWait(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	for range 3 {
		o.park(t, "exhausted", "order-1")
	}
	o.Consume(t, "orders.inbox", 0)
	const one = "failed replay orders --limit 1 --yes"
	o.says(t, exitUsage, one+" --wait", "write --config, or --wait=10m")
	o.says(t, exitUsage, one+" --wait 1m", "--wait: write --wait=1m")
	o.says(t, exitUsage, one+" --wait=soon", "--wait=soon: must be a duration")
	o.says(t, exitOK, one+" --wait=10ms", "After 10ms: 0 back in orders.failed.", "1 message not back: done, or still waiting in a queue or at a consumer.")
	knowing := o.declaring(t)
	knowing.says(t, exitOK, one+" --wait=10ms", "1 message not back so far: the pipeline gives up after 5s.")
	knowing.says(t, exitOK, one+" --wait", "waiting for 15s, since the pipeline gives up after 5s", "After 15s: 0 back")
}
