package failed_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
)

// realFile is an export of messages that other systems really left in a queue: amqplib 0.10.9, Rascal 21.0.1,
// @moleculer/channels 0.1.8, Watermill 1.5.1 with watermill-amqp 3.0.0, Celery 5.2.6, and Symfony Messenger 5.4.53 with its JSON
// and with PHP's serializer, on RabbitMQ 4.0.5.
const realFile = "other-systems.jsonl"

// symfonyPHP is the message from PHP's serializer in the file.
const symfonyPHP = 7

// realMessages are the file's messages, in its order.
func realMessages(t *testing.T) (all []failed.Message) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", realFile))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m, err := file.Decode(lines.Bytes())
		require.NoError(t, err)
		all = append(all, m)
	}
	return all
}

func TestRealMessages(t *testing.T) {
	t.Parallel()
	want := []struct {
		entry failed.Entry
		// headers are the headers that a replay keeps.
		headers []string
	}{
		{failed.Entry{System: failed.SystemBroker, Reason: "rejected", WorkQueue: "plain.work", Attempts: 1}, []string{"n"}},
		{
			failed.Entry{System: failed.SystemRascal, Reason: "rejected", WorkQueue: "rascal.work", Error: "no such van", Attempts: 1},
			[]string{"rascal"},
		},
		{failed.Entry{System: failed.SystemMoleculer, Reason: "failed", WorkQueue: "billing.orders.made"}, nil},
		{
			failed.Entry{System: failed.SystemWatermill, Reason: "failed", WorkQueue: "wm.work", Error: "no such van"},
			[]string{"_watermill_message_uuid", "tenant"},
		},
		{failed.Entry{System: failed.SystemCelery, Reason: "rejected", WorkQueue: "celery.work", Attempts: 1}, nil},
		{failed.Entry{System: failed.SystemCelery, Reason: "rejected", WorkQueue: "celery.work", Attempts: 3}, nil},
		{
			failed.Entry{System: failed.SystemSymfony, Reason: "failed", Error: "no such van"},
			[]string{`X-Message-Stamp-Symfony\Component\Messenger\Stamp\DelayStamp`, "type"},
		},
		{failed.Entry{System: failed.SystemSymfony, Reason: "failed"}, nil},
	}
	messages := realMessages(t)
	require.Len(t, messages, len(want))
	for i, m := range messages {
		e, w := failed.Read(m), want[i].entry
		assert.Truef(t, e.System == w.System && e.Reason == w.Reason && e.WorkQueue == w.WorkQueue && e.Error == w.Error &&
			e.Attempts == w.Attempts, "%s: %+v", m.Queue, e)
		if i == symfonyPHP {
			continue
		}
		queue, how := w.WorkQueue, failed.Replay{}
		if queue == "" {
			queue, how.To = "work", "work"
		}
		p := replayed(t, how, m)
		assert.Truef(t, p.Exchange == "" && p.RoutingKey == queue && string(p.Body) == string(m.Body), "%s: published %+v", m.Queue, p)
		kept := names(parsed(t, p.Properties).Headers())
		if w.System == failed.SystemCelery {
			assert.Truef(t, slices.Contains(kept, "task") && !slices.Contains(kept, "x-death"), "%s: headers %q", m.Queue, kept)
			continue
		}
		assert.Equal(t, append(want[i].headers, "replay-count", "replayed-at", "replay-id"), kept, m.Queue)
	}
}

// If PHP's serializer put the stamp of a failure into the body, a replay cannot remove it. Symfony would drop the message when it
// fails again.
func TestReplayRefusesWhatSymfonyCouldDrop(t *testing.T) {
	t.Parallel()
	m := realMessages(t)[symfonyPHP]
	encoded := m // as the serializer writes bodies that are not UTF-8
	encoded.Body = []byte(base64.StdEncoding.EncodeToString(m.Body))
	for _, m := range []failed.Message{m, encoded} {
		e := failed.Read(m)
		assert.Equal(t, failed.SystemSymfony, e.System)
		_, err := failed.Replay{To: "work"}.Publishing(&e, now)
		require.ErrorContains(t, err, "use messenger:failed:retry")
	}
	m.Body = bytes.ReplaceAll(m.Body, []byte("SentToFailureTransportStamp"), []byte("SentToFailureTransportStamq"))
	assert.Equal(t, failed.SystemBroker, failed.Read(m).System)
}

// Rascal rejects marked messages until the broker has counted another death. A replayed message has no deaths, so it must
// have no mark.
func TestReplayOfWhatRascalHasMarked(t *testing.T) {
	t.Parallel()
	m := realMessages(t)[1]
	notes := func(encoded []byte) []string {
		value, _ := parsed(t, encoded).Headers().Get("rascal")
		table, ok := value.Table()
		require.Truef(t, ok, "rascal is %+v", value)
		return names(table)
	}
	before := notes(m.Properties)
	assert.Truef(t, slices.Contains(before, "recovery") && slices.Contains(before, "error"), "notes %q", before)
	want := []string{"originalQueue", "originalVhost", "redeliveries", "originalExchange", "originalRoutingKey", "restoreRoutingHeaders"}
	for _, pipeline := range []failed.Replay{{}, {Pipeline: "orders"}} {
		assert.Equal(t, want, notes(replayed(t, pipeline, m).Properties))
	}
}

// Watermill accepts a message only if all headers are texts.
func TestReplayOfWhatWatermillTakes(t *testing.T) {
	t.Parallel()
	m := realMessages(t)[3]
	for range 2 { // it fails again, with the replay's headers
		p := replayed(t, failed.Replay{}, m)
		headers := parsed(t, p.Properties).Headers()
		for name, value := range headers.All() {
			assert.Equalf(t, byte('S'), value.Type, "%s is %+v", name, value)
		}
		var again content.Properties
		again.SetHeaders(headers.With("reason_poisoned", content.Text("no such van")).With("topic_poisoned", content.Text("wm.work")))
		m.Properties = again.Encode()
	}
	assert.EqualValues(t, 2, failed.Read(m).Replays)
}
