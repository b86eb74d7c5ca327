package worker_test

import (
	"testing"
	"time"
)

// Each message comes once, to the queue of its key, and not before its time.
func TestMessagesAreDelayed(t *testing.T) {
	t.Parallel()
	queues := []string{"eu.mail", "eu.print", "us.mail", "us.print"}
	e := newExchange(t, "1h", "100ms", queues...)
	r := e.work(t)
	deliveries := e.collect(t, queues...)
	sent := e.publishMany(t, 400, 8*time.Second, queues...)
	if n := awaitDue(t, sent, deliveries); n > 0 {
		t.Errorf("%d messages came twice", n)
	}
	r.awaitReady(t, "")
	if n := countLines(r.log.String(), "level=WARN") + countLines(r.log.String(), "level=ERROR"); n > 0 {
		t.Errorf("the log has warnings:\n%s", r.log)
	}
	e.expectEmpty(t, e.names.UnroutedQueue())
}
