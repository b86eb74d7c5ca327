package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

var failures = flag.Int("failures", 1000, "how many messages have failed in the test of an incident")

// malformed is how many messages their consumer cannot read.
const malformed = 20

// incident is a failed queue with malformed messages and messages of three kinds. A third of these are compressed.
func incident(t *testing.T) orders {
	t.Helper()
	o := newOrders(t, "quorum")
	// The provider declares the queue like this, with a limit that looks never reach.
	o.Call(t, http.MethodDelete, o.Path("queues", "orders.failed"), nil, nil)
	o.DeclareQueue(t, "orders.failed", "quorum", map[string]any{"x-delivery-limit": topology.UnreachableDeliveryLimit})
	o.failedExchange(t)
	ch := o.Channel(t)
	require.NoError(t, ch.ExchangeDeclare("orders.failed.route", "fanout", true, false, false, false, nil))
	require.NoError(t, ch.QueueBind("orders.failed", "", "orders.failed.route", false, nil))
	var messages []failed.Publishing
	for i := range *failures {
		messages = append(messages, parkedMessage(t, i, "exhausted", []string{
			fmt.Sprintf("order %d not found", i),
			fmt.Sprintf("Traceback (most recent call last):\n  File \"pay.py\", line %d\nTimeoutError: after %d.5s", i, i),
			fmt.Sprintf("no stock in 6f1c1b0e-8a7b-4f6d-9e0a-%012d since 2026-11-22T01:12:04Z", i),
		}[i%3], i%3 == 1))
	}
	for i := range malformed {
		messages = append(messages, parkedMessage(t, *failures+i, "malformed", "unknown currency EURO", i%2 == 0))
	}
	o.publishRaw(t, messages...)
	o.holds(t, "orders.failed", *failures+malformed)
	return o
}

// parkedMessage is a message as a worker parks it.
func parkedMessage(t *testing.T, n int, reason, problem string, compressed bool) failed.Publishing {
	t.Helper()
	headers := content.Table{}.With("dead-letter-at", content.Long(time.Now().UnixMilli())).With("retry-count", content.Long(4))
	for name, text := range map[string]string{
		"dead-letter-reason": reason, "dead-letter-error": problem, "retry-queue": "orders.created", "retry-pipeline": "orders",
		"retry-exchange": "shop", "retry-routing-key": "order.created.eu",
	} {
		headers = headers.With(name, content.Text(text))
	}
	var p content.Properties
	p.SetHeaders(headers)
	p.SetText(content.MessageID, fmt.Sprintf("order-%d", n))
	body := fmt.Appendf(nil, `{"order":%d,"currency":"EURO"}`, n)
	if compressed {
		p.SetText(content.ContentEncoding, "gzip")
		var err error
		body, err = failed.Encoded("gzip", body)
		require.NoError(t, err)
	}
	return failed.Publishing{Exchange: "orders.failed.route", RoutingKey: "order.created", Properties: p.Encode(), Body: body}
}

// bodies reads the failed queue, and returns the bodies by message-id and the number of messages by id.
func (o orders) bodies(t *testing.T) (byMessageID map[string]string, byID map[string]int) {
	t.Helper()
	byMessageID, byID = map[string]string{}, map[string]int{}
	_, err := transfer.Run(t.Context(), o.queue("orders.failed"), transfer.Job{Decide: func(e *failed.Entry) transfer.Choice {
		plain, _ := e.Plain()
		byMessageID[e.MessageID] = string(plain)
		byID[e.ID]++
		return transfer.Choice{}
	}})
	require.NoError(t, err)
	return byMessageID, byID
}

// edited is a copy of a file with one text replaced.
func edited(t *testing.T, name, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Contains(t, string(text), from)
	return write(t, strings.ReplaceAll(string(text), from, to))
}

// runOf is the run's id in a command's output.
func runOf(t *testing.T, text string) string {
	t.Helper()
	found := regexp.MustCompile(`"run":"([0-9a-f]{8})"`).FindStringSubmatch(text)
	require.NotNilf(t, found, "no run in %s", text)
	return found[1]
}

// The conflicts of the first lines are named, in any order of the queue.
func TestConflictsInAnyOrder(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.failedExchange(t)
	for _, id := range []string{"order-1", "order-2", "order-3", "order-4", "order-5"} {
		o.park(t, "malformed", id)
	}
	out, _ := o.run(t, exitOK, "failed export orders --decode")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Reverse(lines)
	corrected := write(t, strings.ReplaceAll(strings.Join(lines, "\n")+"\n", `\"id\":\"order`, `\"id\":\"Order`))
	_, errs := o.run(t, exitError, "failed import orders "+corrected+" --yes")
	for i, line := range lines[:3] {
		contains(t, errs, fmt.Sprintf("line %d: orders.failed has 1 message with id %s, and the file has 1.", i+1, line[len(`{"version":1,"id":"`):][:16]))
	}
	assert.NotContains(t, errs, "line 4")
}

// Ids and counts stay the same from the list to the last undo. No message is lost, and only reported messages are duplicated.
func TestUndo(t *testing.T) {
	t.Parallel()
	o := incident(t)
	all := *failures + malformed
	before, ids := o.bodies(t)
	same := func(step string, want map[string]string) {
		t.Helper()
		o.holds(t, "orders.failed", len(want))
		got, gotIDs := o.bodies(t)
		require.Truef(t, maps.Equal(gotIDs, ids) && maps.Equal(got, want), "%s: %d ids of %d messages", step, len(gotIDs), len(got))
	}
	require.Truef(t, len(before) == all && len(ids) == all, "%d ids of %d messages", len(ids), len(before))

	// The list shows four failures, and each message is readable.
	out, errs := o.run(t, exitOK, "failed list orders")
	contains(t, out, "order <n> not found", "TimeoutError: after <n>s", "no stock in <uuid> since <time>", "20", "unknown currency EURO")
	assert.Equal(t, 5, strings.Count(out, "\n"), out)
	contains(t, errs, fmt.Sprintf("%d messages in orders.failed; all put back", all))
	out, _ = o.run(t, exitOK, "failed list orders --messages --error", "TimeoutError: after <n>s")
	contains(t, out, "REASON", "ERROR, OR BODY", "exhausted", "TimeoutError: after")
	for line := range strings.Lines(out) {
		assert.LessOrEqual(t, len([]rune(line)), 121, line)
	}
	o.prints(t, exitOK, "failed show orders order-1",
		"Error\n  Traceback (most recent call last):\n    File \"pay.py\", line 1\n  TimeoutError: after 1.5s\n", "content_encoding  gzip",
		"as gzip)\n{\n  \"order\": 1,\n  \"currency\": \"EURO\"\n}")
	out, _ = o.run(t, exitOK, "failed show orders order-1 -o json")
	var shown struct {
		ID, Decoded, Body string
		Properties        struct {
			Headers         map[string]any
			ContentEncoding string `json:"content_encoding"`
		}
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil || shown.Decoded != "gzip" || shown.Body != before["order-1"] ||
		shown.Properties.Headers["retry-queue"] != "orders.created" || shown.Properties.ContentEncoding != "gzip" || ids[shown.ID] != 1 {
		t.Errorf("%s: %v", out, err)
	}

	// Export all messages and import them again.
	file := filepath.Join(t.TempDir(), "all.jsonl")
	o.run(t, exitOK, "failed delete orders --all --export "+file+" --yes")
	o.says(t, exitUsage, "failed import orders "+file, "write --yes")
	o.holds(t, "orders.failed", 0)
	_, errs = o.run(t, exitOK, "failed import orders "+file+" --yes")
	contains(t, errs, fmt.Sprintf("imported %d of %d messages", all, all), "failed delete orders --vhost "+o.Vhost+" --run "+runOf(t, errs)+" --discard")
	same("an import", before)
	imported := runOf(t, errs)
	_, errs = o.run(t, exitOK, "failed import orders "+file+" --yes")
	contains(t, errs, fmt.Sprintf("imported 0 of %d messages", all), fmt.Sprintf("%d messages in the queue already", all),
		fmt.Sprintf("in the queue already, %d of run %s", all, imported))
	lacks(t, errs, "To undo", " of them: ")
	same("the same import again", before)

	// Edit the malformed messages, and replace the originals.
	odd := filepath.Join(t.TempDir(), "malformed.jsonl")
	o.run(t, exitOK, "failed export orders --reason malformed --decode --file "+odd)
	o.says(t, exitOK, "failed import orders "+odd+" --yes", "imported 0 of 20 messages", "20 messages in the queue already")
	corrected := edited(t, odd, `\"currency\":\"EURO\"`, `\"currency\":\"EUR\"`)
	o.says(t, exitError, "failed import orders "+corrected+" --yes",
		"nothing was imported: messages with 20 ids of the file have other content in orders.failed; --replace puts",
		"line 1: orders.failed has 1 message with id ", "and the file has 1.")
	same("a refused import", before)
	_, errs = o.run(t, exitOK, "failed import orders "+corrected+" --replace --yes")
	contains(t, errs, "imported 20 of 20 messages", "replaced 20 of 20 messages", `"replaced":20`)
	lacks(t, errs, "To undo")
	_, errs = o.run(t, exitOK, "failed list orders --reason malformed --run", runOf(t, errs)+","+imported)
	contains(t, errs, ", 0 of them selected")
	want := maps.Clone(before)
	for i := *failures; i < all; i++ {
		want[fmt.Sprintf("order-%d", i)] = strings.Replace(want[fmt.Sprintf("order-%d", i)], "EURO", "EUR", 1)
	}
	same("a replacement", want)
	o.says(t, exitOK, "failed import orders "+corrected+" --replace --yes",
		"imported 0 of 20 messages", "20 messages in the queue already")
	same("the same replacement again", want)

	// A replay removes the headers about the failure, but a file keeps them.
	saved := filepath.Join(t.TempDir(), "replayed.jsonl")
	o.says(t, exitOK, "failed replay orders --reason malformed --to elsewhere --dry-run",
		"With --to, the messages lose reason, error, history and the queue that they failed in. --export FILE keeps all of it")
	o.DeclareQueue(t, "elsewhere", "quorum", nil)
	o.says(t, exitOK, "failed replay orders --reason malformed --to elsewhere --export "+saved+" --yes",
		"replayed 20 of 20 to elsewhere", "The original messages are in "+saved)
	for range malformed {
		d, ok := o.Get(t, "elsewhere")
		assert.Truef(t, ok && d.Headers[failed.HeaderID] == nil && d.Headers[failed.HeaderRun] == nil && d.Headers["dead-letter-reason"] == nil,
			"delivery %+v", d)
	}
	_, errs = o.run(t, exitOK, "failed import orders "+saved+" --yes")
	same("an import of what was replayed", want)

	// Undo an import.
	run := runOf(t, errs)
	o.prints(t, exitOK, "failed list orders --run "+run, "20     malformed")
	o.says(t, exitOK, "failed delete orders --run "+run+" --discard --yes", "deleted 20 of 20")
	o.holds(t, "orders.failed", *failures)
	left, _ := o.bodies(t)
	assert.Truef(t, left["order-0"] == before["order-0"] && left[fmt.Sprintf("order-%d", *failures)] == "", "%d messages", len(left))
}

// A command fails if its run has no messages. The existing runs can be listed.
func TestRunThatIsNotThere(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.failedExchange(t)
	o.says(t, exitError, "failed delete orders --run 0badcafe --discard --yes", "orders.failed is empty", "no message belongs to the run 0badcafe")
	_, errs := o.run(t, exitOK, "failed import orders "+exportedLine(t)+" --yes")
	run := runOf(t, errs)
	o.prints(t, exitOK, "failed list orders --group-by run", "RUN", run)
	for _, command := range []string{
		"list orders --run 0badcafe", "delete orders --run 0badcafe --discard --yes", "export orders --run 0badcafe," + run, "delete orders --run 0badcafe --dry-run",
	} {
		o.says(t, exitError, "failed "+command, `no message belongs to the run 0badcafe in "orders.failed"`,
			"rabbitmq-retry failed list orders --vhost "+o.Vhost+" --group-by run lists the runs")
	}
	o.says(t, exitUsage, "failed delete orders --run "+run+" --dry-run --export file", "--dry-run and --export: write only one of them")
	o.says(t, exitOK, "failed delete orders --run "+run+" --dry-run", "would delete 1 message")
	o.holds(t, "orders.failed", 1)
	o.says(t, exitOK, "failed delete orders --run "+run+" --discard --yes", "deleted 1 of 1")
}

// killed runs a command and kills it once it has begun.
func (o orders) killed(t *testing.T, begun func() bool, args ...string) {
	t.Helper()
	program := o.program(t, args...)
	require.NoError(t, program.Start())
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	for !begun() && len(ended) == 0 {
		time.Sleep(time.Millisecond) // some of these commands take no longer
	}
	_ = program.Process.Kill()
	if err := <-ended; err == nil {
		t.Logf("%v ended before it was killed", args)
	}
}

// A killed delete or import can be continued. File and queue together have every message, and the import skips messages that
// are in both.
func TestKilledUndo(t *testing.T) {
	t.Parallel()
	o := incident(t)
	all := *failures + malformed
	before, ids := o.bodies(t)
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.jsonl"), filepath.Join(dir, "second.jsonl")
	o.killed(t, func() bool { info, err := os.Stat(first); return err == nil && info.Size() > 0 },
		"failed", "delete", "orders", "--all", "--export", first, "--yes")
	o.awaitStill(t)
	o.run(t, exitOK, "failed delete orders --all --export "+second+" --yes")
	text, err := os.ReadFile(first)
	require.NoError(t, err)
	// The message of a partial line is in the other file.
	whole := write(t, string(text[:bytes.LastIndexByte(text, '\n')+1]))
	o.killed(t, func() bool { return o.left(t, "orders.failed") > 0 }, "failed", "import", "orders", whole, "--yes")
	o.awaitStill(t)
	t.Logf("%d of %d imported when killed", o.left(t, "orders.failed"), bytes.Count(text, []byte("\n")))
	o.run(t, exitOK, "failed import orders "+whole+" --yes")
	if _, err := os.Stat(second); err == nil {
		o.run(t, exitOK, "failed import orders "+second+" --yes")
	}
	o.holds(t, "orders.failed", all)
	after, again := o.bodies(t)
	assert.Truef(t, maps.Equal(after, before) && maps.Equal(again, ids), "%d messages of %d ids", len(after), len(again))
}

// awaitStill waits until the broker again counts the messages that a killed command held.
func (o orders) awaitStill(t *testing.T) {
	t.Helper()
	last, since := -1, time.Now()
	brokertest.Eventually(t, func() error {
		count, err := o.queue("orders.failed").Count(t.Context())
		if err != nil {
			return err
		}
		if count.Ready != last || count.Consumers > 0 {
			last, since = count.Ready, time.Now()
		}
		if time.Since(since) < time.Second {
			return fmt.Errorf("%d messages are ready, and %d consumers there", count.Ready, count.Consumers)
		}
		return nil
	})
}
