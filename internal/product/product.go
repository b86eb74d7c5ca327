// Package product tells RabbitMQ from the other brokers that speak AMQP 0-9-1.
package product

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// RabbitMQ is what it calls itself, unless its server_properties or product.name say otherwise.
const RabbitMQ = "RabbitMQ"

// others are in the names of brokers that are certainly not RabbitMQ. AvalancheMQ became LavinMQ, and WSO2's brokers are Qpid's.
var others = []string{"lavinmq", "avalanchemq", "ottermq", "qpid", "swiftmq", "garagemq"}

// IsOther reports whether a broker of this name is certainly not RabbitMQ.
func IsOther(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(others, func(other string) bool { return strings.Contains(name, other) })
}

// OtherError is a broker that is certainly not RabbitMQ.
type OtherError struct{ Found string }

// Error says which broker it is, and why it does not do.
func (e *OtherError) Error() string {
	return fmt.Sprintf("the broker is not RabbitMQ, but %s: RabbitMQ 3.10 or later is needed, "+
		"since other brokers lack its quorum queues and at-least-once dead-lettering", e.Found)
}

// IsOtherError reports whether the error is over a broker that is certainly not RabbitMQ.
func IsOtherError(err error) bool {
	var other *OtherError
	return errors.As(err, &other)
}

// Unfamiliar says of a broker of this name that it is taken for RabbitMQ.
func Unfamiliar(name string) string {
	return fmt.Sprintf("the broker calls itself %q: it is taken for RabbitMQ 3.10 or later under another name", name)
}
