// Package failed reads the messages of a failed queue and decides how to handle them: which ones a filter selects, how a list
// shows them, and how replays publish them.
//
// It does no input or output: encoded properties go in and come out. A worker, the broker itself or the libraries of other
// systems can have parked a message. Reading a message never fails, whatever it contains.
package failed

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// Message is a message in a queue.
type Message struct {
	// Queue is the queue's name.
	Queue string
	// Exchange and RoutingKey belong to the delivery, so they tell how the message got into the queue.
	Exchange, RoutingKey string
	// Redelivered says that the message was delivered before.
	Redelivered bool
	// Properties are the flags and the property list of the content header, as on the wire.
	Properties []byte
	Body       []byte
}

// System is the program whose headers describe why a message failed, "" if the message does not say that it failed.
type System string

// Systems whose messages this package can read.
const (
	// SystemWorker is a pipeline's worker.
	SystemWorker System = "rabbitmq-retry"
	// SystemInbox is the broker, which moved the message from a pipeline's inbox to its failed queue.
	SystemInbox System = "inbox"
	// SystemDelayed is a delayed exchange, whose unrouted queue has the message.
	SystemDelayed System = "delayed exchange"
	// SystemBroker is the broker, which dead-lettered the message from any other queue.
	SystemBroker      System = "broker"
	SystemNServiceBus System = "NServiceBus"
	SystemMassTransit System = "MassTransit"
	SystemSpring      System = "Spring"
	SystemCelery      System = "Celery"
	SystemBabelQueue  System = "BabelQueue"
	SystemRascal      System = "Rascal"
	SystemMoleculer   System = "Moleculer"
	SystemWatermill   System = "Watermill"
	SystemRebus       System = "Rebus"
	SystemWolverine   System = "Wolverine"
	SystemSymfony     System = "Symfony Messenger"
	SystemEasyNetQ    System = "EasyNetQ"
)

// Entry has the facts that can be read from a failed message. Facts that are not known are empty or zero.
type Entry struct {
	Message
	// ID is its [Digest], or the id that it had before it was imported.
	ID string
	// Digest identifies the message by its content.
	Digest string
	// Run is the id of the import that put the message into the queue.
	Run    string
	System System
	// Reason is why the message was parked.
	Reason string
	// WorkQueue is the queue whose consumer failed to process the message. A replay sends it there.
	WorkQueue string
	// FirstExchange and FirstRoutingKey are the exchange and the routing key that the message was first published with.
	FirstExchange, FirstRoutingKey string
	// Pipeline is the pipeline that the message's headers name.
	Pipeline string
	// Error is the consumer's text, Exception its type or stack trace.
	Error, Exception string
	// FirstFailedAt is when the message first failed, FailedAt when it was parked.
	FirstFailedAt, FailedAt time.Time
	// Attempts and MaxAttempts count deliveries, including the first one.
	Attempts, MaxAttempts int64
	// History has the failures, newest first.
	History []deadletter.Failure
	// MessageID is the property message-id.
	MessageID string
	// DelayMS is the rest of the delay in milliseconds, counted from FailedAt, that a delayed exchange could not apply.
	DelayMS int64
	// Replays is how often the message was replayed before.
	Replays int64
	// Due is when the message of a delayed exchange is due, zero if it is due already or if that is not known. DueBy is the latest
	// such time if only bounds are known, otherwise zero.
	Due, DueBy time.Time
	// Level is the queue of a delayed exchange that the message waits in, "" if it does not wait. Leaves is the earliest time when
	// it leaves that level. Messages behind it leave later.
	Level  string
	Leaves time.Time
	// ReplayID is the id of the run that replayed the message last.
	ReplayID string
	// DeliveryCount is how often the message was put back. The queue compares this number with its delivery limit.
	DeliveryCount int64
	// wrapper is set if EasyNetQ wrapped the message that failed.
	wrapper *wrapper
	// Refusal is why no replay can publish the message that failed, nil if one can.
	Refusal error
	// errorOf is the system that wrote the error of a message that a worker parked.
	errorOf System
	// Unreadable is the error of reading the properties, nil if they can be read.
	Unreadable error
}

// fields are headers by name. A header of the wrong type reads as if it were missing.
type fields map[string]content.Value

func readFields(t content.Table) fields {
	f := make(fields)
	for name, value := range t.All() {
		if _, repeated := f[string(name)]; !repeated {
			f[string(name)] = value
		}
	}
	return f
}

// has reports whether all of these headers are present.
func (f fields) has(names ...string) bool {
	for _, name := range names {
		if _, found := f[name]; !found {
			return false
		}
	}
	return true
}

func (f fields) text(name string) string {
	text, _ := f[name].Text()
	return text
}

// table returns nil if the header is not a table.
func (f fields) table(name string) fields {
	t, ok := f[name].Table()
	if !ok {
		return nil
	}
	return readFields(t)
}

func (f fields) integer(name string) int64 {
	n, _ := f[name].Integer()
	return n
}

// positive returns 0 if the header is not a positive number.
func (f fields) positive(name string) int64 { return max(0, f.integer(name)) }

// digits is positive for a number that was written as text.
func (f fields) digits(name string) int64 {
	n, _ := strconv.ParseInt(f.text(name), 10, 64) // 0 for any other text
	return max(0, n)
}

// millis reads milliseconds since the epoch.
func (f fields) millis(name string) time.Time { return fromMillis(f.integer(name)) }

// maxMillis is the end of the year 9999, the last that calendars can show.
const maxMillis = 253402300799999

func fromMillis(ms int64) time.Time {
	if ms <= 0 || ms > maxMillis {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// join puts the type of an exception before its stack trace, unless the trace begins with it.
func join(kind, trace string) string {
	if kind == "" || strings.HasPrefix(trace, kind) {
		return trace
	}
	return strings.TrimSuffix(kind+"\n"+trace, "\n")
}

// Count is a number with a noun whose plural ends in s, such as "1 message" or "2 messages".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Messages is a number of messages, such as "1 message" or "2 messages".
func Messages(n int) string { return Count(n, "message") }

// Printable escapes bytes that are not text, and characters that would move a terminal's cursor, change its colors or reorder
// the text. Ends of lines and tabs stay.
func Printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, acts) {
		return text
	}
	var printable strings.Builder
	for character := range strings.SplitSeq(text, "") {
		if !utf8.ValidString(character) || strings.ContainsFunc(character, acts) {
			quoted := strconv.QuoteToASCII(character)
			character = quoted[1 : len(quoted)-1]
		}
		printable.WriteString(character)
	}
	return printable.String()
}

// acts reports whether a terminal would do something other than show the character.
func acts(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029')
}
