package failed_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

func TestImportChangesNothing(t *testing.T) {
	t.Parallel()
	m := parkedByWorker(header{"CC", []any{"x"}}, header{"x-death", []any{}})
	how := failed.Import{Exchange: "orders.failed", Queue: "orders.failed", FrameMax: 131_072, Run: "ab12cd34"}
	p, changes, err := how.Publishing(m, "57f49eb29bd4307c")
	before, after := parsed(t, m.Properties), parsed(t, p.Properties)
	added := before.Headers().With(failed.HeaderID, content.Text("57f49eb29bd4307c")).With(failed.HeaderRun, content.Text("ab12cd34"))
	if before.SetHeaders(added); err != nil || changes != nil || !bytes.Equal(p.Properties, before.Encode()) {
		t.Errorf("properties %q, changes %q, error %v", after.Encode(), changes, err)
	}
	// A message without room for the id is still imported.
	how.FrameMax = len(m.Properties) + 20
	p, changes, err = how.Publishing(m, "57f49eb29bd4307c")
	assert.Truef(t, err == nil && slices.Equal(changes, []string{"gets another id, since the header for the old id does not fit a frame of the connection"}) && bytes.Equal(p.Properties, m.Properties),
		"properties %q, changes %q, error %v", p.Properties, changes, err)
	assert.Truef(t, p.Exchange == "orders.failed" && p.RoutingKey == "order.created", "to %q, %q", p.Exchange, p.RoutingKey)
}

func TestImportChangesWhatTheBrokerDoesNotBear(t *testing.T) {
	t.Parallel()
	var before content.Properties
	before.SetHeaders(table(header{"CC", []any{"x"}}, header{"x-delivery-count", 3}))
	before.SetText(content.Expiration, "60000")
	before.SetText(content.UserID, "shop")
	before.SetText(content.ReplyTo, "amq.rabbitmq.reply-to")
	before.SetNumber(content.DeliveryMode, 0)
	p, changes, err := failed.Import{Queue: "errors", User: "operator"}.Publishing(
		failed.Message{RoutingKey: "k", Properties: before.Encode()}, "57f49eb29bd4307c")
	require.NoError(t, err)
	want := []string{
		"expiration dropped, since the message would expire in the queue", "user-id moved to the header retry-user-id, since brokers refuse another user's name",
		"reply-to amq.rabbitmq.reply-to moved to the header retry-reply-to, since only clients that await a reply can use it",
		"the broker's count of deliveries dropped", "delivery-mode 0 changed to 1, since brokers close the connection over 0",
		"header CC dropped, since copies would go to other queues",
	}
	assert.Truef(t, slices.Equal(changes, want) && p.Exchange == "" && p.RoutingKey == "errors",
		"to %q, %q: %q", p.Exchange, p.RoutingKey, changes)
	after := parsed(t, p.Properties)
	assert.Truef(t, slices.Equal(names(after.Headers()), []string{"retry-user-id", "retry-reply-to", failed.HeaderID}) &&
		!after.Has(content.ReplyTo) && !after.Has(content.UserID) && !after.Has(content.Expiration) && after.Number(content.DeliveryMode) == 1,
		"properties %q", p.Properties)
	_, changes, _ = failed.Import{Queue: "errors", User: "shop"}.Publishing(failed.Message{Properties: before.Encode()}, "")
	assert.False(t, slices.ContainsFunc(changes, func(change string) bool { return strings.HasPrefix(change, "user-id") }),
		"moved the publisher's own user-id")
}

// An id that a publisher writes does not count. The id counts only in messages that took an import's route.
func TestImportKeepsTheID(t *testing.T) {
	t.Parallel()
	how := failed.Import{Exchange: "orders.failed", Queue: "orders.failed", Run: "ab12cd34"}
	parked := parkedByWorker()
	parked.Queue, parked.Exchange = "orders.failed", "orders.failed.route"
	before := failed.Read(parked)
	p, _, err := how.Publishing(parked, before.ID)
	require.NoError(t, err)
	imported := failed.Message{Queue: "orders.failed", Exchange: p.Exchange, RoutingKey: p.RoutingKey, Properties: p.Properties, Body: p.Body}
	after := failed.Read(imported)
	assert.Truef(t, after.ID == before.ID && after.Digest != before.Digest && after.Run == "ab12cd34",
		"id %s, digest %s, run %s; before %s", after.ID, after.Digest, after.Run, before.ID)
	assert.Equal(t, failed.Digest(how.Content(imported)), failed.Digest(how.Content(parked)), "an import has changed the content")
	again, err := failed.Replay{Pipeline: "orders"}.Publishing(&after, now)
	assert.Truef(t, err == nil && !bytes.Contains(again.Properties, []byte("failed-")), "replayed with %q, error %v", again.Properties, err)
	imported.Exchange = "orders.failed.route"
	forged := failed.Read(imported)
	assert.Truef(t, forged.ID == forged.Digest && forged.Run == "", "id %s, run %s", forged.ID, forged.Run)
	imported.Body = []byte("edited")
	assert.NotEqual(t, failed.Digest(how.Content(parked)), failed.Digest(how.Content(imported)), "other bodies are one content")
}

// The compression of a body is not part of its content.
func TestContentIgnoresCompression(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"gzip", "deflate"} {
		var p content.Properties
		p.SetText(content.ContentEncoding, encoding)
		body, err := failed.Encoded(encoding, []byte(`{"order":1003}`))
		require.NoError(t, err)
		m := failed.Message{Properties: p.Encode(), Body: body}
		plain, got := m.Plain()
		assert.Truef(t, got == encoding && string(plain) == `{"order":1003}`, "%s: %q as %q", encoding, plain, got)
		assert.Equal(t, `{"or`, string(m.Beginning(4)), encoding)
		m.Body = body[:len(body)-3]
		plain, got = m.Plain()
		assert.Truef(t, got == "" && bytes.Equal(plain, m.Body), "%s: cut off, it is %q as %q", encoding, plain, got)
	}
}
