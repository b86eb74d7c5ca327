package session

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// parkedOneByOne is how many parked messages of a minute have a line each. The others are summed up.
	parkedOneByOne = 100
	// mostErrors is how many errors a sum tells apart. errorLength is the longest name of an error, in bytes.
	mostErrors, errorLength = 20, 60
)

// parkedLog logs parked messages. After the first ones of a minute, it sums up, since an incident must not flood the log.
type parkedLog struct {
	log   *slog.Logger
	since time.Time
	lines int
	sums  map[parkedAs]*parkedSum
}

// parkedAs is what the messages of one sum have in common.
type parkedAs struct{ text, reason, workQueue string }

type parkedSum struct {
	messages int
	errors   map[string]int
}

// add logs a message now, or in the next sum.
func (l *parkedLog) add(now time.Time, as parkedAs, d *amqp.Delivery, details ...any) {
	l.observe(now)
	if l.lines < parkedOneByOne {
		if l.lines++; l.lines == 1 {
			l.since, l.sums = now, map[parkedAs]*parkedSum{}
		}
		l.log.Info(as.text, details...)
		return
	}
	if l.sums[as] == nil {
		l.sums[as] = &parkedSum{errors: map[string]int{}}
	}
	l.sums[as].add(d)
}

func (s *parkedSum) add(d *amqp.Delivery) {
	s.messages++
	kind := errorKind(d)
	if s.errors[kind] == 0 && len(s.errors) >= mostErrors {
		kind = "others"
	}
	s.errors[kind]++
}

// errorKind is the name of the consumer's error: one word before the first colon. The rest can have what no log must
// have. It returns "" if there is no such word.
func errorKind(d *amqp.Delivery) string {
	text, _ := d.Headers[deadletter.HeaderDeadLetterError].(string)
	kind, _, named := strings.Cut(text, ":")
	if !named || len(kind) > errorLength || strings.ContainsFunc(kind, unicode.IsSpace) {
		return ""
	}
	return kind
}

// observe logs the sums after a minute.
func (l *parkedLog) observe(now time.Time) {
	if now.Sub(l.since) >= time.Minute {
		l.flush()
	}
}

// flush logs the sums, and begins another minute.
func (l *parkedLog) flush() {
	for as, sum := range l.sums {
		l.log.Info(as.text+", and others like it",
			"reason", as.reason, "work_queue", as.workQueue, "messages", sum.messages, "errors", sum.String())
	}
	l.lines, l.sums = 0, nil
}

// String lists the errors, each with its number of messages.
func (s *parkedSum) String() string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(s.errors)) {
		if kind != "" {
			list = append(list, fmt.Sprintf("%s: %d", kind, s.errors[kind]))
		}
	}
	return strings.Join(list, ", ")
}
