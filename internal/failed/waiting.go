package failed

import (
	"cmp"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
)

// ReadWaiting returns the facts about a message that waits in a level, now. Its ID is the same in each level. If it does not say
// when it is due, this is the earliest possible time. It accepts properties of any content.
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
		Level: m.Queue, Due: cmp.Or(f.millis(delaying.HeaderDueAt), now.Add(rest).UTC()),
	}
	if e.ID == "" {
		e.ID = digest(m, &properties, err == nil)
	}
	e.Leaves = e.Due.Add(-rest)
	return e
}
