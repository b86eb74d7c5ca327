package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

// orders is what the commands need of a pipeline.
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
	o.Publish(t, "", "orders.failed", amqp.Publishing{MessageId: id, Body: []byte(`{"id":"` + id + `"}`), Headers: amqp.Table{
		"dead-letter-reason": reason, "dead-letter-at": time.Now().UnixMilli(), "retry-queue": "orders.created", "retry-pipeline": "orders",
		"retry-exchange": "shop", "retry-routing-key": "order.created.eu", "retry-count": int64(4), "retry-max-attempts": int64(4),
		"retry-publish-id": id,
	}})
}

// run executes a command against the broker, and fails unless it ends with this code.
func (o orders) run(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	got, stdout, stderr := execute(t.Context(), o.env, append(args, "--vhost", o.Vhost)...)
	if got != code {
		t.Errorf("%v: exit code %d, want %d\n%s%s", args, got, code, stdout, stderr)
	}
	return stdout, stderr
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q is in\n%s", part, text)
		}
	}
}

// An incident: what failed, one message in full, one tried, and the others.
func TestIncident(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"quorum", "classic"} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			o := newOrders(t, queueType)
			for i := range 5 {
				o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
			}
			o.park(t, "unrecoverable", "order-9")

			out, errs := o.run(t, exitOK, "failed", "list", "orders")
			contains(t, out, "COUNT  REASON         QUEUE           ERROR", "5      exhausted      orders.created  -")
			contains(t, errs, "6 messages in orders.failed; all put back. --messages lists them with their ids.")

			out, _ = o.run(t, exitOK, "failed", "list", "orders", "--reason", "unrecoverable", "-o", "id")
			id := strings.TrimSpace(out)
			out, _ = o.run(t, exitOK, "failed", "show", "orders", id[:8])
			contains(t, out, "unrecoverable", "order.created.eu", "4/4", `"id": "order-9"`)
			out, _ = o.run(t, exitOK, "failed", "show", "orders", id, "--raw")
			if out != `{"id":"order-9"}` {
				t.Errorf("body %q", out)
			}

			_, errs = o.run(t, exitError, "failed", "replay", "orders", "--reason", "exhausted", "--limit", "1", "--yes", "--wait=10ms", "--to", "nowhere")
			contains(t, errs, "1 message returned, since no queue is bound for them", `there is no queue "nowhere"`)
			o.consumeInbox(t)
			_, errs = o.run(t, exitOK, "failed", "replay", "orders", "--reason", "exhausted", "--limit", "1", "--yes", "--wait=10ms")
			contains(t, errs, "replayed 1 of 5 to orders.created (replay-id ", "After 10ms: 0 back in orders.failed.")
			d, ok := o.Get(t, "orders.created")
			if !ok || d.RoutingKey != "order.created.eu" || d.Headers["replay-count"] != int64(1) || d.Headers["dead-letter-reason"] != nil {
				t.Errorf("delivery %+v", d)
			}
			_, errs = o.run(t, exitOK, "failed", "redrive", "orders", "--reason", "exhausted", "--yes")
			contains(t, errs, "replayed 4 of 4 to orders.created")
			var record struct {
				Command, Queue, User string
				Counts               map[string]int
			}
			line := errs[strings.LastIndex(errs, "\n{")+1:]
			if err := json.Unmarshal([]byte(line), &record); err != nil || record.Counts["replayed"] != 4 || record.User != o.Username {
				t.Errorf("record %s: %v", line, err)
			}
			out, _ = o.run(t, exitOK, "status", "orders")
			contains(t, out, "orders.inbox    0      1          -", "orders.retry.*  ?      ?          not counted", "orders.failed   1      0")
		})
	}
}

// The ids of a list, or lines of it, say what is replayed.
func TestReplayIDs(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	for i := range 3 {
		o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
	}
	out, _ := o.run(t, exitOK, "failed", "list", "orders", "--message-id", "order-1", "--message-id", "order-2", "--messages", "-o", "jsonl")
	_, errs := o.run(t, exitOK, "failed", "replay", "orders", "--ids", write(t, out), "--dry-run")
	contains(t, errs, "would replay 2 messages to orders.created")
	_, errs = o.run(t, exitUsage, "failed", "replay", "orders", "--ids", write(t, out))
	contains(t, errs, "write --yes")
	o.run(t, exitOK, "failed", "replay", "orders", "--ids", write(t, out), "--yes")
	for _, want := range []string{"order-1", "order-2"} {
		if d, _ := o.Get(t, "orders.created"); d.MessageId != want {
			t.Errorf("got %q, want %q", d.MessageId, want)
		}
	}
}

// What is missing is named.
func TestFailedTexts(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	as := func(write, read string) orders {
		name, password := o.User(t, "", "", write, read)
		other := o
		other.env = with(o.env, cli.EnvURI, strings.Replace(o.URI, o.Username+":"+o.Password, name+":"+password, 1))
		return other
	}
	_, errs := o.run(t, exitError, "failed", "list", "invoices")
	contains(t, errs, `queue "invoices.failed" does not exist in this vhost`, `is there a pipeline "invoices"?`, "write --queue invoices.delay.unrouted")
	_, errs = as("", "").run(t, exitError, "failed", "list", "orders")
	contains(t, errs, `needs: read on "orders.failed"`)
	_, errs = as("", "orders").run(t, exitError, "failed", "replay", "orders", "--all", "--yes")
	contains(t, errs, `needs: write on "orders.return"`)
	_, errs = as("", "orders").run(t, exitError, "failed", "replay", "orders", "--all", "--yes", "--to", "orders.created")
	contains(t, errs, `needs: write on "amq.default"`)
	o.Call(t, http.MethodDelete, o.Path("exchanges", "orders.return"), nil, nil)
	_, errs = o.run(t, exitError, "failed", "replay", "orders", "--all", "--yes")
	contains(t, errs, `exchange "orders.return" does not exist: run terraform apply`)
	out, _ := o.run(t, exitOK, "failed", "list", "orders", "-o", "json")
	contains(t, out, `"messages": 1`)

	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no pipeline": {[]string{"failed", "list"}, "which pipeline or delayed exchange? Write its name, or --queue; rabbitmq-retry status with --config or --endpoint shows all"},
		"format":      {[]string{"failed", "list", "orders", "-o", "xml"}, `--output "xml": must be one of table, json, jsonl, id`},
		"no time":     {[]string{"failed", "list", "orders", "--since", "1h", "--until", "2h"}, "--since 1h: is later than the end, 2h: no message"},
		"no age":      {[]string{"failed", "replay", "orders", "--since", "1h", "--older-than", "2h", "--yes"}, "--since 1h: is later than the end, 2h"},
		"time":        {[]string{"failed", "list", "orders", "--since", "yesterday"}, `--since "yesterday": must be a time`},
		"rate":        {[]string{"failed", "replay", "orders", "--all", "--rate", "fast"}, `--rate "fast": must be messages a second`},
		"id":          {[]string{"failed", "replay", "orders", "--ids", write(t, `{"id":"57f4"}`)}, `--ids: line 1: "57f4" is not an id`},
		"column":      {[]string{"failed", "list", "orders", "--group-by", "color"}, `--group-by "color"`},
		"short id":    {[]string{"failed", "show", "orders", "57"}, "at least its first 4 digits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs := o.run(t, exitUsage, test.args...)
			contains(t, errs, test.want)
		})
	}
}

func TestListOfNothing(t *testing.T) {
	t.Parallel()
	out, _ := newOrders(t, "classic").run(t, exitOK, "failed", "list", "orders", "-o", "json")
	contains(t, out, `"groups": []`, `"rows": []`)
}

// consumeInbox does as a worker that takes nothing.
func (o orders) consumeInbox(t *testing.T) {
	t.Helper()
	if _, err := o.Channel(t).Consume("orders.inbox", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}

// A wait is as long as the pipeline retries, and says what it cannot know.
func TestReplayWait(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	for range 3 {
		o.park(t, "exhausted", "order-1")
	}
	o.consumeInbox(t)
	one := []string{"failed", "replay", "orders", "--limit", "1", "--yes"}
	_, errs := o.run(t, exitUsage, append(one, "--wait")...)
	contains(t, errs, "write --config, or --wait=10m")
	_, errs = o.run(t, exitUsage, append(one, "--wait", "1m")...)
	contains(t, errs, "--wait: write --wait=1m")
	_, errs = o.run(t, exitUsage, append(one, "--wait=soon")...)
	contains(t, errs, "--wait=soon: must be a duration")
	_, errs = o.run(t, exitOK, append(one, "--wait=10ms")...)
	contains(t, errs, "After 10ms: 0 back in orders.failed.", "1 message not back: done, or still waiting in a queue or at a consumer.")
	knowing := o.declaring(t)
	_, errs = knowing.run(t, exitOK, append(one, "--wait=10ms")...)
	contains(t, errs, "1 message not back so far: the pipeline gives up after 5s.")
	_, errs = knowing.run(t, exitOK, append(one, "--wait")...)
	contains(t, errs, "waiting for 15s, since the pipeline gives up after 5s", "After 15s: 0 back")
}
