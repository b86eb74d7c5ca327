package session

import (
	"log/slog"
	"time"
)

// mostRefusing bounds how many refusing exchanges are remembered.
const mostRefusing = 4096

// refusalsOver is how long an exchange must take all messages before the log says that its queues refuse no more.
const refusalsOver = 30 * time.Second

// refusals remembers which exchanges have queues that refuse messages, so that the log reports each once. An exchange
// that leads to the failed queues of work queues has an entry for each work queue.
type refusals struct {
	log  *slog.Logger
	last map[refusing]time.Time
}

// refusing is an exchange and, if there is one, the work queue whose messages are refused.
type refusing struct{ exchange, workQueue string }

// refused notes that a message goes elsewhere, as the text says.
func (r *refusals) refused(now time.Time, exchange, workQueue, text string, more ...any) {
	at := refusing{exchange, workQueue}
	if _, known := r.last[at]; !known {
		if r.last == nil || len(r.last) >= mostRefusing {
			r.last = map[refusing]time.Time{}
		}
		r.log.Warn(text, at.details(more...)...)
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
		details = append(details, "work_queue", r.workQueue)
	}
	return details
}
