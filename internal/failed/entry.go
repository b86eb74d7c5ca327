// Package failed reads the messages of a failed queue, and says what to do with them: which are meant, how
// they are listed, and what is published when they are replayed.
//
// It is pure: encoded properties go in and come out. A message may have been parked by a worker, by a broker
// itself, or by the libraries of other systems; whatever it holds, reading it never fails.
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

// Message is a message as it lies in a queue.
type Message struct {
	// Queue is where it lies.
	Queue string
	// Exchange and RoutingKey are those of the delivery: how it came to the queue.
	Exchange, RoutingKey string
	// Redelivered says that it was delivered before.
	Redelivered bool
	// Properties are the flags and the property list of the content header, as they are on the wire.
	Properties []byte
	Body       []byte
}

// System is whose headers say why a message failed.
type System string

// Systems whose messages can be read.
const (
	// SystemWorker is the worker of a pipeline.
	SystemWorker System = "rabbitmq-retry"
	// SystemInbox is the broker, which moved the message from a pipeline's inbox to its failed queue.
	SystemInbox System = "inbox"
	// SystemDelayed is a delayed exchange, in whose unrouted queue the message lies.
	SystemDelayed System = "delayed exchange"
	// SystemBroker is the broker, which dead-lettered the message for whatever queue.
	SystemBroker      System = "broker"
	SystemNServiceBus System = "NServiceBus"
	SystemMassTransit System = "MassTransit"
	SystemSpring      System = "Spring"
	SystemCelery      System = "Celery"
	SystemBabelQueue  System = "BabelQueue"
	SystemRascal      System = "Rascal"
	SystemMoleculer   System = "Moleculer"
	SystemWatermill   System = "Watermill"
	// SystemUnknown is nobody: the message does not say that it failed.
	SystemUnknown System = ""
)

// Entry is what can be read of a failed message. What the message does not say is empty or zero.
type Entry struct {
	Message
	// ID is its [Digest], or the id that it had before it was imported.
	ID string
	// Digest tells it from all that differ in anything.
	Digest string
	// Run is that of the import that put it into the queue.
	Run    string
	System System
	// Reason is why it was parked.
	Reason string
	// WorkQueue is the queue whose consumer failed on it: where a replay sends it.
	WorkQueue string
	// FirstExchange and FirstRoutingKey are where it was published to first.
	FirstExchange, FirstRoutingKey string
	// Pipeline is the one that its headers name.
	Pipeline string
	// Error is the consumer's text, Exception its type or stack trace.
	Error, Exception string
	// FirstFailedAt and FailedAt are when it failed first, and when it was parked.
	FirstFailedAt, FailedAt time.Time
	// Attempts and MaxAttempts count deliveries, the first one included.
	Attempts, MaxAttempts int64
	// History has the failures, newest first.
	History []deadletter.Failure
	// MessageID is the property.
	MessageID string
	// DelayMS is for how many milliseconds a delayed exchange should have kept it and did not, counted from FailedAt.
	DelayMS int64
	// Replays is how often it was replayed before.
	Replays int64
	// ReplayID is that of the run that replayed it last.
	ReplayID string
	// DeliveryCount is how often the queue counts that it was put back, which it compares with its delivery limit.
	DeliveryCount int64
	// Unreadable is why nothing can be read of the properties, nil if it can.
	Unreadable error
}

// fields are headers by name. Of what is not as it should be, nothing is read.
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

// has reports whether all of these are there.
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

// table has no fields if it is none.
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

// positive is 0 for what is no positive number.
func (f fields) positive(name string) int64 { return max(0, f.integer(name)) }

// millis reads milliseconds since the epoch.
func (f fields) millis(name string) time.Time { return fromMillis(f.integer(name)) }

// maxMillis is the end of the year 9999: no calendar has what comes later.
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

// Count is a number of things, whose plural has an s.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Messages is a number of messages.
func Messages(n int) string { return Count(n, "message") }

// Printable escapes what is no text, or would move a terminal's cursor, change its colors or reorder what it shows. Ends
// of lines and tabs stay.
func Printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, acts) {
		return text
	}
	var printable strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if part := text[:size]; r == utf8.RuneError && size == 1 || acts(r) {
			quoted := strconv.QuoteToASCII(part)
			printable.WriteString(quoted[1 : len(quoted)-1])
		} else {
			printable.WriteString(part)
		}
		text = text[size:]
	}
	return printable.String()
}

// acts reports whether a terminal does something else than show it.
func acts(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029')
}
