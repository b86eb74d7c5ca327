package failed_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

func TestImportChangesNothing(t *testing.T) {
	t.Parallel()
	m := parkedByWorker(header{"CC", []any{"x"}}, header{"x-death", []any{}})
	p, changes, err := failed.Import{Exchange: "orders.failed", Queue: "orders.failed", FrameMax: 131_072}.Publishing(m)
	if err != nil || changes != nil || !bytes.Equal(p.Properties, m.Properties) {
		t.Errorf("properties %q, changes %q, error %v", p.Properties, changes, err)
	}
	if p.Exchange != "orders.failed" || p.RoutingKey != "order.created" {
		t.Errorf("to %q, %q", p.Exchange, p.RoutingKey)
	}
}

func TestImportChangesWhatTheBrokerDoesNotBear(t *testing.T) {
	t.Parallel()
	var before content.Properties
	before.SetHeaders(table(header{"CC", []any{"x"}}, header{"x-delivery-count", 3}))
	before.SetText(content.Expiration, "60000")
	before.SetText(content.UserID, "shop")
	before.SetText(content.ReplyTo, "amq.rabbitmq.reply-to")
	before.SetNumber(content.DeliveryMode, 0)
	p, changes, err := failed.Import{Queue: "errors", User: "operator"}.Publishing(failed.Message{RoutingKey: "k", Properties: before.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		failed.ChangedExpiration, failed.ChangedUserID, failed.ChangedReplyTo, failed.ChangedCounts, failed.ChangedDeliveryMode, failed.ChangedCC,
	}
	if !slices.Equal(changes, want) || p.Exchange != "" || p.RoutingKey != "errors" {
		t.Errorf("to %q, %q: %q", p.Exchange, p.RoutingKey, changes)
	}
	after := parsed(t, p.Properties)
	if !slices.Equal(names(after.Headers()), []string{"retry-user-id", "retry-reply-to"}) || after.Has(content.ReplyTo) || after.Has(content.UserID) || after.Has(content.Expiration) ||
		after.Number(content.DeliveryMode) != 1 {
		t.Errorf("properties %q", p.Properties)
	}
	_, changes, _ = failed.Import{Queue: "errors", User: "shop"}.Publishing(failed.Message{Properties: before.Encode()})
	if slices.Contains(changes, failed.ChangedUserID) {
		t.Error("moved the publisher's own user-id")
	}
}
