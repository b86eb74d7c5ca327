//go:build chaos

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// ledger knows what happened to each message, by its id.
type ledger struct {
	began time.Time

	mu      sync.Mutex
	records map[string]*record
	// open counts the messages that the broker has confirmed and that have not ended.
	confirmed, open int

	// returnedAt is when a message came back to a consumer last, pause the longest time without one.
	returnedAt, pauseAt time.Time
	pause               time.Duration
}

// record is the history of a message.
type record struct {
	confirmed bool
	parked    string
	// ends counts how often it was processed or parked, again those ends that followed a redelivery:
	// the broker could not know that the consumer had processed it before.
	ends, again int
	events      []event
}

type event struct {
	at   time.Time
	what string
}

func newLedger() *ledger { return &ledger{began: time.Now(), records: map[string]*record{}} }

// enter adds to the history of a message. The caller holds the lock.
func (l *ledger) enter(id, format string, args ...any) *record {
	r := l.records[id]
	if r == nil {
		r = &record{}
		l.records[id] = r
	}
	r.events = append(r.events, event{time.Now(), fmt.Sprintf(format, args...)})
	return r
}

// confirm enters that the broker has the message: from now on it must not be lost.
func (l *ledger) confirm(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.enter(id, "confirmed")
	r.confirmed = true
	l.confirmed++
	if r.ends == 0 {
		l.open++
	}
}

// unanswered enters that nobody knows whether the broker has the message.
func (l *ledger) unanswered(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(id, "published, but not confirmed")
}

func (l *ledger) reject(id string, count int64, queue string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(id, "rejected from %s, failed before: %d", queue, count)
	if count > 0 {
		l.comesBack()
	}
}

func (l *ledger) process(id string, count int64, redelivered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(l.enter(id, "processed, failed before: %d, redelivered: %t", count, redelivered), redelivered)
	if count > 0 {
		l.comesBack()
	}
}

// deliver enters that a message was delivered for the first time that it was meant to, so much after that was due.
func (l *ledger) deliver(id, queue string, late time.Duration, redelivered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(l.enter(id, "delivered to %s, late by %s, redelivered: %t", queue, late, redelivered), redelivered)
	l.comesBack()
}

func (l *ledger) park(id, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.enter(id, "parked: %s", reason)
	r.parked = reason
	l.end(r, false)
}

func (l *ledger) end(r *record, redelivered bool) {
	r.ends++
	if redelivered {
		r.again++
	}
	if r.confirmed && r.ends == 1 {
		l.open--
	}
}

// comesBack measures how long nothing comes back.
func (l *ledger) comesBack() {
	now := time.Now()
	if still := now.Sub(l.returnedAt); !l.returnedAt.IsZero() && still > l.pause {
		l.pause, l.pauseAt = still, l.returnedAt
	}
	l.returnedAt = now
}

// sent is how many messages the broker has confirmed, left how many of them have not ended.
func (l *ledger) sent() (sent, left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.confirmed, l.open
}

// balance is what became of all messages.
type balance struct {
	confirmed, unanswered, processed, duplicated, redelivered int
	parked                                                    map[string]int
	lost                                                      []string
}

func (l *ledger) balance() balance {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := balance{confirmed: l.confirmed, parked: map[string]int{}}
	for id, r := range l.records {
		if !r.confirmed {
			b.unanswered++
		} else if r.ends == 0 {
			b.lost = append(b.lost, id)
		}
		switch {
		case r.parked != "":
			b.parked[r.parked]++
		case r.ends > 0:
			b.processed++
		}
		if r.ends > 1 {
			b.duplicated++
		}
		if r.ends > 1 && r.ends-r.again <= 1 {
			b.redelivered++
		}
	}
	slices.Sort(b.lost)
	return b
}

func (b balance) String() string {
	return fmt.Sprintf("confirmed %d (and %d without an answer), processed %d, failed %v, duplicated %d (%.3f %%; %d of them by a consumer that lost its connection), lost %d",
		b.confirmed, b.unanswered, b.processed, b.parked, b.duplicated, 100*float64(b.duplicated)/float64(max(1, b.confirmed)), b.redelivered, len(b.lost))
}

// history is all that is known about a message.
func (l *ledger) history(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	text.WriteString(id)
	for _, e := range l.records[id].events {
		fmt.Fprintf(&text, "\n  %s %s", since(l.began, e.at), e.what)
	}
	return text.String()
}

// since is a time of the run, as all of its logs show it.
func since(began, at time.Time) string { return fmt.Sprintf("%7.2f s", at.Sub(began).Seconds()) }
