package worker

import (
	"regexp"

	amqp "github.com/rabbitmq/amqp091-go"
)

// traceContext is version 00 of W3C Trace Context. Whatever else stands in the header may be anything,
// of any length, and is not for the log.
var traceContext = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// traceparent is the trace that the message belongs to, "" if it does not say.
func traceparent(h amqp.Table) string {
	parent, _ := h["traceparent"].(string)
	if !traceContext.MatchString(parent) {
		return ""
	}
	return parent
}
