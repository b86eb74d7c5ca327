package guard

import (
	"bytes"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

const headerDeath = "x-death"

// unreadable takes the place of an x-death that the broker could not read.
var unreadable = content.List(content.Value{Type: content.TypeVoid})

// HasUnreadableDeath reports whether RabbitMQ before 3.13 would fail to dead-letter a delivery.
func HasUnreadableDeath(h amqp.Table) bool {
	deaths, _ := h[headerDeath].([]any)
	return len(deaths) == 1 && deaths[0] == nil
}

// isUnreadable reports whether RabbitMQ before 3.13 fails over the x-death when it dead-letters the message: over an
// element that is no table, a count that is no integer, and, when it publishes again, routing keys that are no list. It
// reads the first x-death, and replaces one that is no list.
func isUnreadable(headers content.Table) bool {
	if !bytes.Contains(headers, []byte(headerDeath)) {
		return false
	}
	value, _ := headers.Get(headerDeath)
	deaths, isList := value.Array()
	if !isList {
		return false
	}
	for element := range deaths.All() {
		death, isTable := element.Table()
		count, counted := death.Get("count")
		_, isInteger := count.Integer()
		keys, _ := death.Get("routing-keys")
		if _, areListed := keys.Array(); !isTable || counted && !isInteger || !areListed {
			return true
		}
	}
	return false
}
