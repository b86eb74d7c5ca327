package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

const inbox = "events.delay.inbox"

// acts runs a command of "delayed" once the statistics have the sizes of the messages.
func (o orders) acts(t *testing.T, code int, command string, want ...string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		got, out, errs := execute(t.Context(), o.env, append(strings.Fields("delayed "+command), "--vhost", o.Vhost)...)
		if strings.Contains(errs, "does not know their size yet") {
			return fmt.Errorf("%s", errs)
		}
		require.Equal(t, code, got, out+errs)
		contains(t, errs, want...)
		return nil
	})
}

// cancelled reads a file of "delayed cancel".
func cancelled(t *testing.T, name string) (states map[string]string) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	states = map[string]string{}
	for line := range strings.Lines(string(text)) {
		var m struct {
			Cancel     string
			Properties struct {
				MessageID string `json:"message_id"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		states[m.Properties.MessageID] = m.Cancel
	}
	return states
}

// A cancelled message is in the file and no more in its level. An import publishes it once, with the rest of its delay.
func TestDelayedCancelAndImport(t *testing.T) {
	t.Parallel()
	o := newReminders(t)
	now := time.Now().Truncate(time.Millisecond)
	for i := range 3 {
		o.delay(t, fmt.Sprintf("order-%d", i), "order.created", time.Hour, now)
	}
	o.delay(t, "later", "order.created", 20*time.Hour, now)
	name := filepath.Join(t.TempDir(), "cancelled.jsonl")
	o.acts(t, exitUsage, "cancel events --yes", "which messages?")
	o.acts(t, exitUsage, "cancel events --all --yes --record "+name+" --export "+name, "is the file of the messages")
	o.acts(t, exitOK, "cancel events --routing-key order.* --dry-run", "would cancel 4 of 4 messages")
	o.acts(t, exitOK, "cancel events --message-id order-1 --message-id later --yes --export "+name, "cancelled 2 of 2 messages",
		"rabbitmq-retry delayed import events "+name)
	require.Equal(t, map[string]string{"order-1": "done", "later": "done"}, cancelled(t, name))
	list, _ := o.listsDelays(t, exitOK, "--messages")
	require.Len(t, list.Rows, 2)

	o.says(t, exitUsage, "failed import --queue events.delay.unrouted "+name+" --yes", "write rabbitmq-retry delayed import")
	o.acts(t, exitOK, "import events "+name+" --dry-run", "would import 2 messages")
	o.acts(t, exitOK, "import events "+name+" --yes", "imported 2 of 2 messages")
	require.Equal(t, map[string]string{"order-1": "back", "later": "back"}, cancelled(t, name))
	o.acts(t, exitOK, "import events "+name+" --yes", "would import 0 messages")
	waits := o.inInbox(t, now)
	require.WithinRange(t, waits["order-1"], now.Add(time.Hour), now.Add(time.Hour+unit))
	require.WithinRange(t, waits["later"], now.Add(20*time.Hour), now.Add(20*time.Hour+unit))
	require.Len(t, waits, 2)
}

// unit is the precision of "events". A message waits for a whole number of it.
const unit = 100 * time.Millisecond

// inInbox takes the messages of the inbox, and returns when each is due by its id.
func (o orders) inInbox(t *testing.T, published time.Time) map[string]time.Time {
	t.Helper()
	due := map[string]time.Time{}
	for {
		d, more := o.Get(t, inbox)
		if !more {
			return due
		}
		require.Equal(t, "a", d.Headers["tenant"])
		delay, _ := d.Headers[delaying.HeaderDelay].(int32)
		at, _ := d.Headers[delaying.HeaderDueAt].(int64)
		require.NotContains(t, due, d.MessageId)
		require.WithinRange(t, time.UnixMilli(at).Add(-time.Duration(delay)*time.Millisecond), published, time.Now().Add(time.Millisecond))
		due[d.MessageId] = time.UnixMilli(at)
	}
}

// If a command was killed, an import leaves out what a level still has, and names the rest.
func TestDelayedImportAfterAKill(t *testing.T) {
	t.Parallel()
	o := newReminders(t)
	for _, id := range []string{"taken", "still"} {
		o.delay(t, id, "key", time.Hour, time.Now())
	}
	name := filepath.Join(t.TempDir(), "cancelled.jsonl")
	o.acts(t, exitOK, "cancel events --all --yes --export "+name)
	o.delay(t, "still", "key", time.Hour, time.Now())
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, []byte(strings.ReplaceAll(string(text), `"cancel":"done"`, `"cancel":"open"`)), 0o600))
	o.acts(t, exitError, "import events "+name+" --yes", "publish-taken: a command was killed", "would import 0 messages")
	require.Equal(t, map[string]string{"taken": "open", "still": "kept"}, cancelled(t, name))
	require.Empty(t, o.inInbox(t, time.Now()))
}

// A message that is delivered or rescheduled goes to the inbox, and leaves its level.
func TestDelayedDeliverAndReschedule(t *testing.T) {
	t.Parallel()
	o := newReminders(t)
	now := time.Now().Truncate(time.Millisecond)
	for _, id := range []string{"now", "by", "to", "stays"} {
		o.delay(t, id, "key", time.Hour, now)
	}
	o.acts(t, exitUsage, "reschedule events --all", "at least one of the flags in the group [to by]")
	o.acts(t, exitError, "reschedule events --all --to 25h --yes", "4 messages would wait for longer than 24h")
	o.acts(t, exitUsage, "deliver events --message-id now", "there is no terminal")
	o.acts(t, exitOK, "deliver events --message-id now --yes", "delivered 1 of 1 message", "No sidecar consumes events.delay.inbox")
	o.acts(t, exitOK, "reschedule events --message-id by --by 2h --yes", "rescheduled 1 of 1 message")
	o.acts(t, exitOK, "reschedule events --message-id to --to 2h --yes", "rescheduled 1 of 1 message")
	list, _ := o.listsDelays(t, exitOK, "--messages")
	require.Len(t, list.Rows, 1)
	require.Equal(t, "publish-stays", list.Rows[0].ID)
	waits := o.inInbox(t, now)
	require.Len(t, waits, 3)
	require.WithinRange(t, waits["now"], now, time.Now())
	require.WithinRange(t, waits["by"], now.Add(3*time.Hour), now.Add(3*time.Hour+unit+time.Second))
	require.WithinRange(t, waits["to"], now.Add(2*time.Hour), time.Now().Add(2*time.Hour))
}

// Messages keep headers of every type, the properties that the sidecar keeps in headers, the keys for copies, and large bodies.
func TestDelayedActsKeepMessages(t *testing.T) {
	t.Parallel()
	headers := amqp.Table{
		"bool": true, "int8": int8(-1), "int16": int16(-2), "int32": int32(-3), "int64": int64(-4), "float32": float32(0.5), "float64": 0.25,
		"bytes": []byte{0, 255}, "text": "ä", "time": time.Unix(1_800_000_000, 0), "decimal": amqp.Decimal{Scale: 2, Value: 314}, "void": nil,
		"table": amqp.Table{"list": []any{int32(1), "two", amqp.Table{}}}, "CC": []any{"copy"}, delaying.HeaderPublishID: "publish-kept",
		delaying.HeaderExpiration: "60000", delaying.HeaderPriority: int64(7), delaying.HeaderUserID: "shop", "delay-15": true,
	}
	for name, size := range map[string]int{"small": 10, "16 MiB": 16 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newReminders(t)
			body := make([]byte, size)
			for i := range body {
				body[i] = byte(i)
			}
			file := filepath.Join(t.TempDir(), "cancelled.jsonl")
			for _, command := range []string{
				"deliver events --all --yes", "reschedule events --all --yes --by 1h", "cancel events --all --yes --export " + file,
			} {
				o.Publish(t, "events.delay.100ms.15", "order.created", amqp.Publishing{
					Headers: headers, ContentType: "text/plain", ContentEncoding: "identity", CorrelationId: "c", ReplyTo: "r", MessageId: "m",
					Timestamp: time.Unix(1_700_000_000, 0), Type: "t", AppId: "a", DeliveryMode: amqp.Persistent, Body: body,
				})
				o.acts(t, exitOK, command)
				if strings.HasPrefix(command, "cancel") {
					o.acts(t, exitOK, "import events "+file+" --yes")
				}
				d, ok := o.Get(t, inbox)
				require.True(t, ok, command)
				for key, want := range headers {
					require.Equal(t, want, d.Headers[key], "%s: %s", command, key)
				}
				require.Equal(t, []any{"order.created", "text/plain", "identity", "c", "r", "m", "t", "a", amqp.Persistent},
					[]any{d.RoutingKey, d.ContentType, d.ContentEncoding, d.CorrelationId, d.ReplyTo, d.MessageId, d.Type, d.AppId, d.DeliveryMode})
				require.True(t, bytes.Equal(body, d.Body), command)
			}
		})
	}
}
