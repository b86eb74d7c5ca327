package failed

import (
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
)

// Waiting is a message that waits in a level of a delayed exchange. Its ID is the same in each level.
type Waiting struct {
	Entry
	// From and By bound when the message is due. They are equal, unless the message was delayed by a release that did not write
	// down the time.
	From, By time.Time
	// Leaves is the earliest time when the message leaves its level. Messages behind it leave later.
	Leaves time.Time
}

// ReadWaiting returns the facts about a message in a level, now. It accepts properties of any content.
func ReadWaiting(m Message, level delayed.Level, n delayed.Names, now time.Time) Waiting {
	properties, err := content.Parse(m.Properties)
	f := readFields(properties.Headers())
	e := Entry{
		Message: m, ID: strings.Clone(f.text(delaying.HeaderPublishID)), MessageID: properties.Text(content.MessageID),
		System: SystemDelayed, FirstExchange: n.Exchange(), FirstRoutingKey: m.RoutingKey, Unreadable: err,
	}
	if e.ID == "" {
		e.ID = digest(m, &properties, err == nil)
	}
	rest := delayed.Rest(level.Bit, level.Unit, func(bit int) bool {
		waits := f[delayed.BitKey(bit)]
		return waits.Type == content.TypeBool && waits.Bytes[0] != 0
	})
	w := Waiting{Entry: e, From: f.millis(delaying.HeaderDueAt)}
	if w.By = w.From; w.From.IsZero() {
		w.From, w.By = now.Add(rest), now.Add(rest+level.Wait())
	}
	w.Leaves = w.From.Add(-rest)
	return w
}

// Due are bounds for when messages are due. A zero bound bounds nothing.
type Due struct{ After, Before time.Time }

// Has reports whether the message can be due within the bounds.
func (d Due) Has(w *Waiting) bool {
	return !w.By.Before(d.After) && (d.Before.IsZero() || !w.From.After(d.Before))
}
