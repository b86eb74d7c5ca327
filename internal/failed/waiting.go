package failed

import (
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
)

// ReadWaiting returns the facts about a message that waits in a level, now. Its ID is the same in each level. If it does not say
// when it is due, the level and the headers give bounds. It accepts properties of any content.
func ReadWaiting(m Message, level delayed.Level, n delayed.Names, now time.Time) Entry {
	properties, err := content.Parse(m.Properties)
	f := readFields(properties.Headers())
	rest := delayed.Rest(level.Bit, level.Unit, func(bit int) bool {
		waits := f[delayed.BitKey(bit)]
		return waits.Type == content.TypeBool && waits.Bytes[0] != 0
	})
	e := Entry{
		Message: m, ID: strings.Clone(f.text(delaying.HeaderPublishID)), MessageID: properties.Text(content.MessageID), Unreadable: err,
		System: SystemDelayed, FirstExchange: n.Exchange(), FirstRoutingKey: m.RoutingKey,
		Level: m.Queue, Due: f.millis(delaying.HeaderDueAt),
	}
	if e.Due.IsZero() {
		e.Due, e.DueBy = now.Add(rest).UTC(), now.Add(rest+level.Wait()).UTC()
	}
	if e.ID == "" {
		e.ID = digest(m, &properties, err == nil)
	}
	e.Digest = e.ID
	e.Leaves = e.Due.Add(-rest)
	return e
}

// Dated is the message with the latest time when it can be due, if it has no due time.
func Dated(e *Entry) (Message, error) {
	m, by := e.Message, e.DueBy
	if by.IsZero() {
		return m, nil
	}
	properties, err := content.Parse(m.Properties)
	if err == nil {
		properties.SetHeaders(set(properties.Headers(), delaying.HeaderDueAt, content.Long(by.UnixMilli())))
		m.Properties = properties.Encode()
	}
	return m, err
}

// Again builds the message to publish to the delayed exchange, so that it is due then. All else stays as it is: the sidecar knows the
// properties that it has moved into headers by the header that it has written, and drops the headers of the levels. A frameMax of 0
// means no limit.
func Again(m Message, n delayed.Names, due, now time.Time, frameMax int) (Publishing, error) {
	properties, err := content.Parse(m.Properties)
	if err != nil {
		return Publishing{}, err
	}
	rest := max(0, (due.Sub(now) + time.Millisecond - 1).Milliseconds())
	headers := set(properties.Headers(), delaying.HeaderDelay, content.Number(rest))
	properties.SetHeaders(set(headers, delaying.HeaderDueAt, content.Long(due.UnixMilli())))
	p := Publishing{Exchange: n.Exchange(), RoutingKey: m.RoutingKey, Properties: properties.Encode(), Body: m.Body}
	return p, fits(p.Properties, frameMax)
}
