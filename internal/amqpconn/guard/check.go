package guard

import (
	"errors"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// Limits of amqp091-go v1.16, which does not export them.
const (
	// maxDepth is how deep tables and arrays may nest, the headers themselves not counted.
	maxDepth = 32
	// maxEntries is how many entries a table or an array may have. The library counts a repeated key
	// once; no broker repeats one.
	maxEntries = 8192
)

// limits are those, and a type that brokers read and the library does not.
var limits = content.Limits{Depth: maxDepth, Entries: maxEntries, NoLongLong: true}

// errUnreadable says that the client can decode a message, but the broker could not read its x-death.
var errUnreadable = errors.New("x-death is no list that the broker can read")

// Why the client cannot decode a message.
var (
	errTooLarge    = errors.New("the headers are larger than the connection's frame_max")
	errTooDeep     = errors.New("the headers nest deeper than 32 levels")
	errTooMany     = errors.New("the headers have a table or list of more than 8192 entries")
	errUnknownType = errors.New("the headers have a value of an unknown type")
	errMalformed   = errors.New("the properties are malformed")
	errForged      = errors.New("its publisher gave it the header " + HeaderUndecodable)
)

// check is an error if the client could not decode a content header, or else if its x-death is unreadable. It is stricter
// than the client about lengths that do not add up, which no broker sends.
func check(payload []byte) error {
	err := content.Each(payload[frame.ContentSize:], func(p content.Property, value []byte) error {
		if p != content.Headers {
			return nil
		}
		headers := content.Table(value[lengthSize:])
		if err := content.CheckTable(headers, limits); err != nil {
			return err
		}
		if isUnreadable(headers) {
			return errUnreadable
		}
		return nil
	})
	switch {
	case err == nil || errors.Is(err, errUnreadable):
		return err
	case errors.Is(err, content.ErrTooDeep):
		return errTooDeep
	case errors.Is(err, content.ErrTooMany):
		return errTooMany
	case errors.Is(err, content.ErrUnknownType):
		return errUnknownType
	}
	return errMalformed
}
