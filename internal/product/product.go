// Package product tells RabbitMQ from the other brokers that speak AMQP 0-9-1.
package product

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// RabbitMQ is RabbitMQ's name, unless its server_properties or product.name set another.
const RabbitMQ = "RabbitMQ"

// others are parts of the names of brokers that are certainly not RabbitMQ. AvalancheMQ became LavinMQ, and WSO2's
// brokers are based on Qpid.
var others = []string{"lavinmq", "avalanchemq", "ottermq", "qpid", "swiftmq", "garagemq"}

// IsOther reports whether a broker of this name is certainly not RabbitMQ.
func IsOther(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(others, func(other string) bool { return strings.Contains(name, other) })
}

// OtherError is the error for a broker that is certainly not RabbitMQ.
type OtherError struct{ Found string }

// Error names the broker and says why it cannot be used.
func (e *OtherError) Error() string {
	return fmt.Sprintf("the broker is not RabbitMQ, but %s: RabbitMQ 3.10 or later is needed, "+
		"since other brokers lack its quorum queues and at-least-once dead-lettering", e.Found)
}

// IsOtherError reports whether the error says that a broker is certainly not RabbitMQ.
func IsOtherError(err error) bool {
	var other *OtherError
	return errors.As(err, &other)
}

// Unfamiliar returns the warning that a broker with this name is taken for RabbitMQ.
func Unfamiliar(name string) string {
	return fmt.Sprintf("the broker calls itself %q: it is treated as RabbitMQ 3.10 or later under another name", name)
}
