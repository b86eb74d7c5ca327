package session

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestRefusalsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r, now := refusals{log: slog.New(slog.NewTextHandler(&log, nil))}, time.Now()
	lines := func() int { return strings.Count(log.String(), "\n") }
	for i := range 100 {
		at := now.Add(time.Duration(i) * time.Second)
		r.accepted(at, "orders.failed", "") // what the full queue is not for
		r.refused(at, "orders.failed", "", setAside, "refused_queue", "orders.retry.0.refused")
	}
	if lines() != 1 || !strings.Contains(log.String(), "refused_queue=orders.retry.0.refused") {
		t.Errorf("log:\n%s", &log)
	}
	r.refused(now, "orders.failed", "a", setAside, "refused_queue", "orders.retry.0.refused")
	if lines() != 2 || !strings.Contains(log.String(), "queue=a") {
		t.Errorf("log of another obstruction:\n%s", &log)
	}
	for range 2 {
		r.accepted(now.Add(time.Hour), "orders.failed", "")
	}
	if lines() != 3 || !strings.Contains(log.String(), "take all messages again") {
		t.Errorf("log of the end:\n%s", &log)
	}
}

// Whoever makes up names of queues takes no memory.
func TestManyRefusals(t *testing.T) {
	t.Parallel()
	r := refusals{log: slog.New(slog.DiscardHandler)}
	for i := range 2 * mostRefusing {
		r.refused(time.Now(), "orders.failed.route", string(rune(i)), setAside)
	}
	if n := len(r.last); n > mostRefusing {
		t.Errorf("%d remembered", n)
	}
}
