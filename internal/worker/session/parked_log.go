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
	// sums have the numbers of messages, by the name of their error.
	sums map[parkedAs]map[string]int
}

// parkedAs is what the messages of one sum have in common.
type parkedAs struct{ text, reason, workQueue string }

// add logs a message now, or in the next sum.
func (l *parkedLog) add(now time.Time, as parkedAs, d *amqp.Delivery, details ...any) {
	l.observe(now)
	if l.lines < parkedOneByOne {
		if l.lines++; l.lines == 1 {
			l.since, l.sums = now, map[parkedAs]map[string]int{}
		}
		l.log.Info(as.text, details...)
		return
	}
	if l.sums[as] == nil {
		l.sums[as] = map[string]int{}
	}
	kind := errorKind(d)
	if l.sums[as][kind] == 0 && len(l.sums[as]) >= mostErrors {
		kind = "others"
	}
	l.sums[as][kind]++
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
	for as, errors := range l.sums {
		messages, list := 0, []string{}
		for _, kind := range slices.Sorted(maps.Keys(errors)) {
			messages += errors[kind]
			if kind != "" {
				list = append(list, fmt.Sprintf("%s: %d", kind, errors[kind]))
			}
		}
		l.log.Info(as.text+", and others like it",
			"reason", as.reason, "work_queue", as.workQueue, "messages", messages, "errors", strings.Join(list, ", "))
	}
	l.lines, l.sums = 0, nil
}
