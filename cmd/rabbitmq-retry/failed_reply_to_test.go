package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest/amqp10"
)

// A broker closes the channel over direct reply-to, in the middle of what is under way.
func TestReplayOfDirectReplyTo(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	if !o.VersionAtLeast("4.0") {
		t.Skipf("no message of RabbitMQ %s has it", o.Version)
	}
	const messages, every = 300, 100
	sender := amqp10.Dial(t, o.Broker).To(t, "/queues/orders.failed")
	for i := range messages {
		replyTo := amqp10.Null
		if i%every == every-1 {
			replyTo = amqp10.Text("amq.rabbitmq.reply-to")
		}
		sender.Send(t, amqp10.Message{
			Properties:            amqp10.List(amqp10.Text(fmt.Sprintf("order-%d", i)), amqp10.Null, amqp10.Null, amqp10.Null, replyTo),
			ApplicationProperties: amqp10.Map(amqp10.Text("dead-letter-reason"), amqp10.Text("exhausted"), amqp10.Text("retry-queue"), amqp10.Text("orders.created")),
		}.Encode())
	}
	o.await(t, messages)
	_, errs := o.run(t, exitOK, "failed", "replay", "orders", "--all", "--yes")
	contains(t, errs, "replayed 300 of 300 to orders.created")
	brokertest.Eventually(t, func() error { return o.has(t, "orders.created", messages) })
	for i := range messages {
		d, _ := o.Get(t, "orders.created")
		if moved := d.Headers["retry-reply-to"] == "amq.rabbitmq.reply-to"; d.MessageId != fmt.Sprintf("order-%d", i) || moved != (i%every == every-1) {
			t.Errorf("%d: %q with the headers %v", i, d.MessageId, d.Headers)
		}
	}
}

func TestImportOfDirectReplyTo(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.failedExchange(t)
	o.park(t, "exhausted", "order-1")
	line, _ := o.run(t, exitOK, "failed", "export", "orders")
	file := filepath.Join(t.TempDir(), "failed.jsonl")
	edited := strings.Replace(line, `"properties":{`, `"properties":{"reply_to":"amq.rabbitmq.reply-to",`, 1)
	require.NoError(t, os.WriteFile(file, []byte(line+edited+line), 0o600))
	_, errs := o.run(t, exitOK, "failed", "import", "orders", file, "--yes")
	contains(t, errs, "imported 2 of 3", "1 message in the queue already", "1 of them: reply-to amq.rabbitmq.reply-to moved to the header retry-reply-to")
	_, errs = o.run(t, exitOK, "failed", "import", "orders", file, "--replay", "--yes")
	contains(t, errs, "imported 3 of 3")
}
