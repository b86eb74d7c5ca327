package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

const unrouted = "events.delay.unrouted"

// newEvents has a delayed exchange "events" with levels of 100, 200, 400 and 800 ms.
func newEvents(t *testing.T) orders {
	t.Helper()
	o := orders{Broker: brokertest.New(t)}
	o.env = map[string]string{cli.EnvURI: o.URI}
	o.expand(t)
	return o
}

// expand creates the delayed exchange on the broker.
func (o orders) expand(t *testing.T) {
	t.Helper()
	o.Create(t, delayed.Exchange{
		Name: "events", Vhost: o.Vhost, Type: "topic", PolicyPriority: delayed.DefaultPolicyPriority,
		MaxDelay: pipeline.Delay{Wait: time.Second, Spelling: "1s"}, Precision: pipeline.Delay{Wait: 100 * time.Millisecond, Spelling: "100ms"},
	}.Expand())
}

// bind makes an application's queue receive due messages.
func (o orders) bind(t *testing.T, queue, key string) {
	t.Helper()
	o.DeclareQueue(t, queue, "quorum", nil)
	require.NoError(t, o.Channel(t).QueueBind(queue, key, "events.deliver", false, nil))
}

// holds waits until this many messages are ready, since large messages come back late.
func (o orders) holds(t *testing.T, queue string, want int) {
	t.Helper()
	brokertest.Eventually(t, func() error { return o.has(t, queue, want) })
}

// tooLong parks a message as the sidecar does if its delay exceeds max_delay.
func (o orders) tooLong(t *testing.T, id string, delay time.Duration, parked time.Time) {
	t.Helper()
	o.Publish(t, unrouted, "order.paid", amqp.Publishing{MessageId: id, Body: []byte(id), Headers: amqp.Table{
		"x-delay": delay.Milliseconds(), "dead-letter-reason": "delay_too_long", "dead-letter-at": parked.UnixMilli(), "tenant": "a",
	}})
}

// Each message in the unrouted queue has a reason, and can be replayed: at once if it is due, and otherwise not early.
func TestUnrouted(t *testing.T) {
	t.Parallel()
	o := newEvents(t)
	o.tooLong(t, "next year", 365*24*time.Hour, time.Now().Add(-24*time.Hour))
	o.tooLong(t, "yesterday", time.Hour, time.Now().Add(-24*time.Hour))
	// One message is due at once and one after a wait, as the sidecar publishes them.
	o.Publish(t, "events.deliver", "order.paid", amqp.Publishing{
		MessageId: "at once", Headers: amqp.Table{"x-delay": int64(-5), "CC": []any{"order.copied"}},
	})
	o.Publish(t, "events.delay.100ms.0", "order.paid", amqp.Publishing{
		MessageId: "waited", Headers: amqp.Table{"delay-0": true, "x-delay": int64(-100)}, Priority: 0,
	})
	o.Publish(t, "events", "order.paid", amqp.Publishing{MessageId: "undecodable", Headers: amqp.Table{"x-delay": "3600000"}})
	o.holds(t, "events.delay.inbox", 1)
	d, ok, err := o.Channel(t).Get("events.delay.inbox", false)
	require.True(t, err == nil && ok && d.Reject(false) == nil, "rejected", err)
	o.holds(t, unrouted, 5)

	out, errs := o.run(t, exitOK, "failed list --queue "+unrouted)
	contains(t, out, "2      delay_too_long  -", "2      unroutable      -", "1      malformed       -")
	contains(t, errs, "5 messages in "+unrouted+"; all put back. --messages lists")
	o.prints(t, exitOK, "failed list --queue "+unrouted+" --messages", "order.paid", "next year", "undecodable")
	out, _ = o.run(t, exitOK, "failed list --queue "+unrouted+" --message-id", "next year", "-o", "id")
	o.prints(t, exitOK, "failed show --queue "+unrouted+" "+strings.TrimSpace(out),
		"delay_too_long", "delayed exchange", "Due", time.Now().Add(364*24*time.Hour).UTC().Format("2006-01-02"))

	o.says(t, exitOK, "failed replay --queue "+unrouted+" --all --dry-run",
		"would replay 5 messages to events (for the rest of their delay), events.deliver (at once)")
	o.says(t, exitUsage, "failed replay --queue "+unrouted+" --all --to events.delay.100ms.3 --yes",
		"one of the delayed exchange's own queues")

	// No queue is bound, so the broker returns due messages at once.
	o.says(t, exitError, "failed replay --queue "+unrouted+" --reason unroutable --yes",
		"After 0s: 2 back in "+unrouted+". 2 unroutable.", "Bind a queue to events.deliver for the routing keys of the unroutable messages")
	o.bind(t, "paid", "order.paid")
	o.bind(t, "copied", "order.copied")
	o.says(t, exitOK, "failed replay --queue "+unrouted+" --all --yes",
		"replayed 5 of 5 to", "no worker consumes events.delay.inbox, which has 2 messages")
	o.holds(t, "paid", 3)
	o.holds(t, "copied", 1)
	for range 3 {
		d, _ := o.Get(t, "paid")
		delay := delayOf(d)
		assert.Truef(t, d.RoutingKey == "order.paid" && delay < 0 && d.Headers["x-death"] == nil && d.Headers["dead-letter-reason"] == nil,
			"delivered %q: %+v", d.MessageId, d.Headers)
	}
	for range 2 {
		d, _ := o.Get(t, "events.delay.inbox")
		delay := delayOf(d)
		rest := map[string]time.Duration{"next year": 364 * 24 * time.Hour, "undecodable": time.Hour}[d.MessageId]
		early := rest - time.Duration(delay)*time.Millisecond
		assert.Truef(t, d.RoutingKey == "order.paid" && early <= 30*time.Second && early >= -2*time.Second,
			"%q has to wait %d ms, of %s", d.MessageId, delay, rest)
	}
	o.holds(t, unrouted, 0)
}

// delayOf is a message's delay, whatever its integer type.
func delayOf(d amqp.Delivery) int64 {
	switch delay := d.Headers["x-delay"].(type) {
	case int32:
		return int64(delay)
	case int64:
		return delay
	}
	return 0
}

// A message that expired before the sidecar took it has the reason expired, and a replay sends it on with the rest of its
// delay. Every client can read the delay of a due message.
func TestUnroutedExpired(t *testing.T) {
	t.Parallel()
	o := newEvents(t)
	o.Publish(t, "events", "order.paid", amqp.Publishing{MessageId: "expired", Expiration: "1", Headers: amqp.Table{"x-delay": int64(3_600_000)}})
	o.tooLong(t, "yesterday", time.Hour, time.Now().Add(-24*time.Hour))
	o.holds(t, unrouted, 2)
	out, _ := o.run(t, exitOK, "failed list --queue "+unrouted+" --reason expired --messages")
	contains(t, out, "expired")
	assert.NotContains(t, out, "yesterday")
	o.bind(t, "work", "order.paid")
	o.run(t, exitOK, "failed replay --queue "+unrouted+" --all --yes")
	o.holds(t, unrouted, 0)
	o.holds(t, "events.delay.inbox", 1)
	d, _ := o.Get(t, "events.delay.inbox")
	assert.Empty(t, d.Expiration)
	rest, ok := d.Headers["x-delay"].(int32)
	assert.Truef(t, ok && rest > 3_500_000 && rest <= 3_600_000, "replayed with the delay %v", d.Headers["x-delay"])
	o.holds(t, "work", 1)
	d, _ = o.Get(t, "work")
	assert.Equal(t, int32(-3_600_000), d.Headers["x-delay"])
}

// A message that is exported and removed comes back unchanged, with its routing key and its reason.
func TestUnroutedThroughAFile(t *testing.T) {
	t.Parallel()
	o := newEvents(t)
	o.tooLong(t, "next year", 365*24*time.Hour, time.Now())
	o.Publish(t, "events.deliver", "nobody", amqp.Publishing{MessageId: "at once", Headers: amqp.Table{"x-delay": int64(-5)}})
	o.holds(t, unrouted, 2)
	deleted := filepath.Join(t.TempDir(), "deleted")
	o.says(t, exitOK, "failed delete --all --export "+deleted+" --yes --queue "+unrouted,
		"deleted 2 of 2", "To undo: rabbitmq-retry failed import --queue "+unrouted)
	o.holds(t, unrouted, 0)
	o.run(t, exitOK, "failed import --queue "+unrouted+" "+deleted+" --yes")
	o.holds(t, unrouted, 2)
	o.prints(t, exitOK, "failed list --queue "+unrouted+" --messages", "order.paid", "nobody")
	o.prints(t, exitOK, "failed list --queue "+unrouted, "1      delay_too_long", "1      unroutable")
	o.bind(t, "all", "#")
	o.run(t, exitOK, "failed replay --queue "+unrouted+" --all --yes")
	o.holds(t, "all", 1)
	o.holds(t, "events.delay.inbox", 1)
}

// The unrouted queue deletes no messages, however often they are read. A look needs only the permission to read it.
func TestUnroutedQueueIsKnown(t *testing.T) {
	t.Parallel()
	o := newEvents(t)
	o.tooLong(t, "next year", 365*24*time.Hour, time.Now())
	reader := o.as(t, "", unrouted)
	for range 25 {
		_, errs := reader.run(t, exitOK, "failed list --queue "+unrouted)
		require.NotContains(t, errs, "delivery limit")
	}
	reader.says(t, exitError, "failed replay --queue "+unrouted+" --all --yes", `needs: write on "events"`)
	config := write(t, `{"delayed_exchanges":[{"version":1,"name":"events","vhost":"`+o.Vhost+`","max_delay":"1s","precision":"100ms"}]}`)
	code, _, errs := execute(t.Context(), o.env, "failed", "list", "--queue", unrouted, "--config", config)
	assert.Equalf(t, exitOK, code, "the configuration says the vhost: %s", errs)
	o.says(t, exitUsage, "failed list events --config "+config, `"events" is a delayed exchange: write --queue `+unrouted)

	// The delayed exchange's name can be on the command line, too.
	o.says(t, exitOK, "failed replay events --all --queue "+unrouted+" --dry-run", "would replay 1 message to events")

	// Another queue with such a name is an ordinary queue.
	o.DeclareQueue(t, "other.delay.unrouted", "quorum", map[string]any{"x-delivery-limit": 5})
	o.Publish(t, "", "other.delay.unrouted", amqp.Publishing{Body: []byte("1")})
	o.says(t, exitOK, "failed list --queue other.delay.unrouted", "can count against its delivery limit")
}

// A message that is rejected in the unrouted queue stays there, and so does a message that cannot reach the inbox. Neither is
// due.
func TestUnroutedIsNeverEarly(t *testing.T) {
	t.Parallel()
	o := newEvents(t)
	require.NoError(t, o.Channel(t).QueueUnbind("events.delay.inbox", "", "events", nil))
	o.Publish(t, "events", "order.paid", amqp.Publishing{
		MessageId: "1", UserId: o.Username, Headers: amqp.Table{"x-delay": int64(3_600_000)},
	})
	o.bind(t, "paid", "#")
	for range 2 {
		o.holds(t, unrouted, 1)
		o.prints(t, exitOK, "failed list --queue "+unrouted, "1      no_inbox")
		brokertest.Eventually(t, func() error {
			d, ok, err := o.Channel(t).Get(unrouted, false)
			if err != nil || !ok {
				return errors.Join(err, errors.New("nothing there"))
			}
			return d.Reject(false)
		})
	}
	o.holds(t, unrouted, 1)
	o.says(t, exitError, "failed replay --queue "+unrouted+" --all --yes",
		"replayed 1 of 1 to events (for the rest of their delay)", "After 0s: 1 back in "+unrouted+". 1 no_inbox.",
		"events.delay.inbox is not bound to events: run terraform apply")
	o.holds(t, "paid", 0)
	// The worker drops its own headers from a message without a publish id.
	d, _ := o.Get(t, unrouted)
	assert.Equal(t, o.Username, d.Headers["delay-user-id"])
	assert.NotNil(t, d.Headers["delay-publish-id"])
}

// Each command needs exactly the permissions that its --help and the guide "Permissions" name.
func TestUnroutedPermissions(t *testing.T) {
	t.Parallel()
	own, onward := []string{unrouted}, []string{"events.deliver", "events"}
	for _, n := range []needs{
		{"list", nil, own, nil},
		{"export", nil, own, nil},
		{"delete --all --discard --yes", nil, own, nil},
		{"replay --reason unroutable --yes", onward[:1], own, nil},
		{"replay --reason delay_too_long --yes", onward[1:], own, nil},
		{"replay --all --yes --to paid", []string{"amq.default"}, own, nil},
		{"import FILE --yes", own, own, nil},
		{"repair --yes", own, own, nil},
	} {
		t.Run(n.args, func(t *testing.T) {
			t.Parallel()
			o := newEvents(t)
			o.bind(t, "paid", "#")
			o.tooLong(t, "next year", 365*24*time.Hour, time.Now())
			o.Publish(t, unrouted, "order.paid", amqp.Publishing{MessageId: "due", Headers: amqp.Table{"x-delay": int64(-5)}})
			o.holds(t, unrouted, 2)
			out, _ := o.run(t, exitOK, "failed export --queue "+unrouted)
			file := write(t, newIDs(strings.ReplaceAll(out, "order.paid", "order.sent")))
			if strings.Contains(n.args, "repair") {
				n.spoilTo(t, o, unrouted)
			}
			line := "failed " + strings.ReplaceAll(n.args, "FILE", file) + " --queue " + unrouted
			for i := range n.write {
				if !strings.Contains(n.args, "repair") {
					o.as(t, without(n.write, i), only(n.read)).says(t, exitError, line, `needs: write on "`)
				}
			}
			for i := range n.read {
				o.as(t, only(n.write), without(n.read, i)).run(t, exitError, line)
			}
			o.as(t, only(n.write), only(n.read)).run(t, exitOK, line)
		})
	}
}

// Each command works with its permissions in the delayed exchange's operator_permissions.
func TestOperatorPermissionsOfADelayedExchange(t *testing.T) {
	t.Parallel()
	commands := map[string]string{
		"list": "failed list QUEUE", "show": "failed show ID QUEUE", "export": "failed export QUEUE",
		"delete": "failed delete --all --discard --yes QUEUE", "replay": "failed replay --all --yes QUEUE",
		"import": "failed import FILE --yes QUEUE", "repair": "failed repair --yes QUEUE", "status": "status events",
		"delayed list": "delayed list events --yes", "delayed show": "delayed show events soon --yes",
		"delayed cancel": "delayed cancel events --all --yes --export CANCELLED", "delayed deliver": "delayed deliver events --all --yes",
		"delayed reschedule": "delayed reschedule events --all --yes --by 1h", "delayed import": "delayed import events EARLIER --yes",
	}
	const line = `{"version":1,"id":"","queue":"events.delay.100ms.9","exchange":"","routing_key":"key",` +
		`"properties":{"headers":{"delay-publish-id":"publish-soon"}},"body":"","cancel":"%s"}` + "\n"
	earlier := fmt.Sprintf(line, "open") + fmt.Sprintf(line, "done")
	for command, permissions := range delayed.OperatorPermissions("events") {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			o := newEvents(t)
			if command == "repair" {
				o.Needs(t, brokertest.AMQP10)
			}
			o.bind(t, "paid", "#")
			o.tooLong(t, "next year", 365*24*time.Hour, time.Now())
			o.holds(t, unrouted, 1)
			lines, _ := o.run(t, exitOK, "failed export --queue "+unrouted)
			id, _ := o.run(t, exitOK, "failed list --queue "+unrouted+" -o id")
			here := strings.NewReplacer("FILE", write(t, newIDs(lines)), "ID", strings.TrimSpace(id), "QUEUE", "--queue "+unrouted,
				"CANCELLED", filepath.Join(t.TempDir(), "cancelled"), "EARLIER", write(t, earlier))
			o.Consume(t, "events.delay.inbox", 0)
			as := o.as(t, permissions.Write, permissions.Read)
			if strings.HasPrefix(command, "delayed") {
				as = o.waits(t, permissions)
			}
			as.run(t, exitOK, here.Replace(commands[command]))
		})
	}
}
