package operation

import (
	"context"
	"strconv"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// publishing is how long a look publishes messages while it holds others. The next look goes on. Together with the connection, it is
// less than connected.
const publishing, connected = 300 * time.Millisecond, 3 * time.Second

// removal takes chosen messages out of levels. Its zero value takes none out.
type removal struct {
	chosen Chosen
	// release and gone are the functions of a [transfer.Removal]. They get the messages of one level.
	release func(ctx context.Context, held []*failed.Entry) (goes []bool, err error)
	gone    func(held []*failed.Entry) error

	// held are the chosen messages of the level, and goes says which of them were acknowledged.
	held []*failed.Entry
	goes []bool
	transfer.Result
}

func (r *removal) chooses(e *failed.Entry) bool {
	chosen := r.chosen.take(e)
	if chosen {
		r.held = append(r.held, e)
	}
	return chosen
}

func (r *removal) of() *transfer.Removal {
	return &transfer.Removal{
		Release: func(ctx context.Context) (_ []bool, err error) {
			r.goes, err = r.release(ctx, r.held)
			return r.goes, err
		},
		Gone: func() error { return r.gone(r.held) },
	}
}

// note counts what a look has taken out. What it has not is chosen again.
func (r *removal) note(f transfer.Front) {
	for i, e := range r.held {
		if i >= len(r.goes) || !r.goes[i] {
			r.chosen.Add(e)
		}
	}
	r.Dropped += f.Taken
	r.Unverified = r.Unverified || f.Unanswered > 0
	r.held, r.goes = nil, nil
}

// vain is how many looks can take nothing out before a run ends. On a busy machine, the time of a look can be over too soon.
const vain = 3

// run looks until all chosen messages were taken out, or looks take nothing more out.
func (w *Waiting) run(ctx context.Context, r *removal) (transfer.Result, error) {
	enough := false
	for left, looks := r.chosen.Total(), 0; left > 0 && looks < vain; looks++ {
		if err := w.goOver(ctx, r, func(*failed.Entry) {}, &enough); err != nil {
			r.Interrupted = ctx.Err() != nil
			return r.Result, err
		}
		if now := r.chosen.Total(); now < left {
			left, looks = now, -1
		}
	}
	return r.Result, nil
}

// Cancel takes the chosen messages out. The file has a line for each, which says how far that is. What stays in chosen was not found.
func (w *Waiting) Cancel(ctx context.Context, chosen Chosen, to *CancelFile) (transfer.Result, error) {
	var lines []int64
	return w.run(ctx, &removal{
		chosen: chosen,
		release: func(_ context.Context, held []*failed.Entry) ([]bool, error) {
			goes := make([]bool, len(held))
			lines = nil
			for i, e := range held {
				goes[i], lines = true, append(lines, to.next(e))
			}
			return goes, to.set(file.Begun, lines...)
		},
		gone: func([]*failed.Entry) error { return to.set(file.Done, lines...) },
	})
}

// Move publishes the chosen messages to the delayed exchange again, and takes them out once the broker has confirmed. What stays in
// chosen was not found.
func (w *Waiting) Move(ctx context.Context, chosen Chosen, due func(*failed.Entry) time.Time, frameMax int) (transfer.Result, error) {
	r := &removal{chosen: chosen, gone: func([]*failed.Entry) error { return nil }}
	r.release = func(ctx context.Context, held []*failed.Entry) ([]bool, error) {
		ctx, cancel := context.WithTimeout(ctx, connected) // then it waits for the last confirms
		defer cancel()
		goes, next, end := make([]bool, len(held)), 0, time.Time{}
		sent, err := transfer.Send(ctx, w.queue(), transfer.Sending{
			Next: func() (p failed.Publishing, ok bool, err error) {
				if next == 0 {
					end = time.Now().Add(publishing)
				}
				if ok = next < len(held) && time.Now().Before(end); ok {
					p, err = failed.Again(held[next].Message, w.Delayed, due(held[next]), time.Now(), frameMax)
					p.Of = strconv.Itoa(next)
					next++
				}
				return p, ok, err
			},
			Done: func(p failed.Publishing, confirmed bool) {
				i, _ := strconv.Atoi(p.Of)
				goes[i] = confirmed
			},
		})
		r.Confirmed += sent.Confirmed
		r.Returned += sent.Returned
		r.Refused += sent.Refused
		r.Uncertain += sent.Uncertain
		r.Oversized = append(r.Oversized, sent.Oversized...)
		return goes, err
	}
	return w.run(ctx, r)
}

// Idle reports whether no sidecar consumes the inbox.
func (w *Waiting) Idle(ctx context.Context) (bool, error) {
	inbox := *w.Target
	inbox.Name = w.Delayed.Inbox()
	count, err := inbox.Count(ctx)
	return count.Consumers == 0, err
}
