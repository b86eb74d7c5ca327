package main

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

// A variable that is not set must not mean all messages, nor that nothing is kept.
func TestEmptyFlagsAreRefused(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	for _, args := range [][]string{
		{"delete", "orders", "--all", "--export", "", "--yes"},
		{"delete", "orders", "--reason", "exhausted", "--ids", "", "--discard", "--yes"},
		{"replay", "orders", "--ids", "", "--yes"},
		{"replay", "orders", "--message-id", "", "--yes"},
		{"replay", "orders", "--limit", "0", "--yes"},
		{"replay", "orders", "--all", "--record", "", "--yes"},
	} {
		o.run(t, exitUsage, append([]string{"failed"}, args...)...)
	}
	if _, ok := o.Get(t, "orders.failed"); !ok {
		t.Error("the message is gone")
	}
}

// A URI in the wrong place has a password.
func TestURIsAreNoNames(t *testing.T) {
	t.Parallel()
	const uri = "amqp://user:topsecret@host"
	for _, args := range [][]string{
		{"failed", "list", uri},
		{"failed", "list", "--queue", uri},
		{"failed", "replay", "orders", "--all", "--to", uri, "--dry-run"},
		{"failed", "delete", "orders", "--all", "--export", uri, "--yes"},
		{"status", uri},
	} {
		code, stdout, stderr := execute(t.Context(), map[string]string{cli.EnvURI: "amqp://localhost:1"}, args...)
		if code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
		if strings.Contains(stdout+stderr, "topsecret") {
			t.Errorf("%v printed the password", args)
		}
	}
}

// What cannot be replayed stays, which is no success.
func TestSkippedMessagesAreNoSuccess(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.Publish(t, "", "orders.failed", amqp.Publishing{Body: []byte("from nowhere")})
	_, errs := o.run(t, exitError, "failed", "replay", "orders", "--all", "--yes")
	contains(t, errs, "1 skipped: ", "no message can be replayed")
	o.park(t, "exhausted", "order-1")
	_, errs = o.run(t, exitError, "failed", "replay", "orders", "--all", "--yes")
	contains(t, errs, "replayed 1 of 1", "1 skipped: ")
}

// What another consumer holds may be present, and would be duplicated.
func TestImportSeesAllOrNothing(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.failedExchange(t)
	o.park(t, "exhausted", "order-1")
	out, _ := o.run(t, exitOK, "failed", "export", "orders")
	if _, err := o.Channel(t).Consume("orders.failed", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	_, errs := o.run(t, exitError, "failed", "import", "orders", write(t, out), "--yes")
	contains(t, errs, "another consumer", "write --allow-duplicates")
	_, errs = o.run(t, exitOK, "failed", "import", "orders", write(t, out), "--yes", "--allow-duplicates")
	contains(t, errs, "imported 1 of 1")
}
