package session

import (
	"log/slog"
	"time"
)

// mostRefusing bounds how many of them are remembered.
const mostRefusing = 4096

// refusalsOver is how long an exchange takes everything before the log says that its queues refuse nothing more.
const refusalsOver = 30 * time.Second

// refusals remembers which exchanges have queues that refuse messages, so that the log says so once. Those that lead to the failed
// queues of work queues have an entry for each.
type refusals struct {
	log  *slog.Logger
	last map[refusing]time.Time
}

// refusing is an exchange, and the work queue whose messages are refused, if there is one.
type refusing struct{ exchange, workQueue string }

// refused notes that a message goes to the refused queue.
func (r *refusals) refused(now time.Time, refusedQueue, exchange, workQueue string) {
	at := refusing{exchange, workQueue}
	if _, known := r.last[at]; !known {
		if r.last == nil || len(r.last) >= mostRefusing {
			r.last = map[refusing]time.Time{}
		}
		r.log.Warn(setAside, at.details("refused_queue", refusedQueue)...)
	}
	r.last[at] = now
}

// accepted notes that all queues took a message.
func (r *refusals) accepted(now time.Time, exchange, workQueue string) {
	at := refusing{exchange, workQueue}
	if last, known := r.last[at]; known && now.Sub(last) > refusalsOver {
		delete(r.last, at)
		r.log.Info("the queues behind the exchange take all messages again", at.details()...)
	}
}

func (r refusing) details(more ...any) []any {
	details := append([]any{"exchange", r.exchange}, more...)
	if r.workQueue != "" {
		details = append(details, "queue", r.workQueue)
	}
	return details
}
