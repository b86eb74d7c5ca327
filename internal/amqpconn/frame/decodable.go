package frame

import (
	"bytes"
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// HeaderUndecodable is the only header of a message whose own headers the client could not decode. Its value says why.
// It exists only between this package and the client. A published message that looks the same is treated the same.
const HeaderUndecodable = "retry-undecodable"

// maxHeaders is the largest size, in bytes, at which oversized headers are searched for an x-death. Larger ones
// count as having an unreadable one.
const maxHeaders = 1 << 20

// limits are those of amqp091-go v1.16, which does not export them. They also exclude the type 'L', which brokers read
// and the library does not. The headers themselves do not count for the depth. The library counts a repeated key once,
// but no broker repeats a key.
var limits = content.Limits{Depth: 32, Entries: 8192, NoLongLong: true}

// errUnreadable says that the client can decode a message, but the broker could not read its x-death.
var errUnreadable = errors.New("x-death is not a list that the broker can read")

// Why the client cannot decode a message.
var (
	errTooLarge    = errors.New("the headers are larger than the connection's frame_max")
	errTooDeep     = errors.New("the headers nest deeper than 32 levels")
	errTooMany     = errors.New("the headers have a table or list of more than 8192 entries")
	errUnknownType = errors.New("the headers have a value of an unknown type")
	errMalformed   = errors.New("the properties are malformed")
	errForged      = errors.New("the publisher set the header " + HeaderUndecodable)
)

// Undecodable says why the headers of a delivery could not be decoded. It returns nil if they were decoded.
func Undecodable(h amqp.Table) error {
	text, ok := h[HeaderUndecodable].(string)
	if !ok || len(h) > 2 || len(h) == 2 && !HasUnreadableDeath(h) {
		return nil
	}
	for _, reason := range []error{errTooLarge, errTooDeep, errTooMany, errUnknownType, errMalformed} {
		if text == reason.Error() {
			return reason
		}
	}
	return errForged // keeps a publisher's text out of the log
}

// decodable returns properties that the client can decode in place of others. It keeps all that make sense. It returns
// nil if the client can decode them all.
func (c *Conn) decodable(encoded []byte) []byte {
	reason := check(encoded)
	if c.tooLarge(encoded) {
		reason = errTooLarge
	}
	if reason == nil {
		return nil
	}
	var properties content.Properties
	_, _ = properties.Read(encoded) // the error says that the rest makes no sense
	headers := properties.Headers()
	table := content.Table{}.With(HeaderUndecodable, content.Text(reason.Error()))
	if errors.Is(reason, errUnreadable) {
		table = headers.Keep(func(name []byte) bool { return string(name) != headerDeath })
	}
	if errors.Is(reason, errTooLarge) && len(headers) > maxHeaders || isUnreadable(headers) {
		table = table.With(headerDeath, unreadable)
	}
	properties.SetHeaders(table)
	return properties.Encode()
}

// check returns an error if the client could not decode properties, or if their x-death is unreadable. It is stricter
// than the client about lengths that do not add up, which no broker sends.
func check(encoded []byte) error {
	var properties content.Properties
	_, cutOff := properties.Read(encoded)
	headers := properties.Headers()
	err := content.CheckTable(headers, limits)
	switch {
	case err == nil && isUnreadable(headers):
		return errUnreadable
	case err == nil && cutOff == nil:
		return nil
	case errors.Is(err, content.ErrTooDeep):
		return errTooDeep
	case errors.Is(err, content.ErrTooMany):
		return errTooMany
	case errors.Is(err, content.ErrUnknownType):
		return errUnknownType
	}
	return errMalformed
}

const headerDeath = "x-death"

// unreadable replaces an x-death that the broker could not read.
var unreadable = content.List(content.Value{Type: content.TypeVoid})

// HasUnreadableDeath reports whether RabbitMQ before 3.13 would fail to dead-letter a delivery.
func HasUnreadableDeath(h amqp.Table) bool {
	deaths, _ := h[headerDeath].([]any)
	return len(deaths) == 1 && deaths[0] == nil
}

// isUnreadable reports whether RabbitMQ before 3.13 fails on the x-death when it dead-letters the message. It fails on
// an element that is no table, and on a count that is no integer. When it publishes the message again, it fails on
// routing keys that are no list. It reads only the first x-death, and replaces one that is no list.
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
