package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	// shortestLook is the shortest wait of a level that is looked at. A look would make messages of shorter levels late by a large
	// part of their wait.
	shortestLook = 10 * time.Second
	// mostBytes is how many bytes of bodies a look makes the broker read.
	mostBytes = 64 << 20
	// recount is how long after the first count queues are counted again. A quorum queue counts 0 while its leader is busy.
	recount = 300 * time.Millisecond
)

// Place is a queue of a delayed exchange where messages wait, and what a look saw of it.
type Place struct {
	Queue string `json:"queue"`
	// Messages is how many messages are ready. Pending are messages that the next level did not accept yet.
	Messages int   `json:"messages"`
	Pending  int64 `json:"pending,omitempty"`
	Seen     int   `json:"seen"`
	// Unseen is how many messages the look did not see. They are due at UnseenFrom at the earliest.
	Unseen     int       `json:"unseen,omitempty"`
	UnseenFrom time.Time `json:"unseen_due_from,omitzero"`
	// Note is why the place is only counted, "" for a look.
	Note string `json:"note,omitempty"`

	level delayed.Level
	// mean is the size of a body on average, and reported how many messages the management API counts: 0 if it is not known.
	mean, reported int64
}

// Weigh notes the size of the messages. It takes the statistics of the management API, which lag.
func (p *Place) Weigh(messages, bytes int64) {
	if p.reported = messages; messages > 0 {
		p.mean = bytes / messages
	} else if p.Note == "" {
		p.Note = "the management API does not know their size yet, so run the command again in some seconds"
	}
}

// IsLong reports whether the place is a level that waits long enough for a look.
func (p *Place) IsLong() bool { return p.level.Wait() >= shortestLook }

// Waiting looks at the messages of a delayed exchange that wait.
type Waiting struct {
	*Target
	Places []Place
	// progress is called with the name of each level before the look at it.
	progress func(queue string)
}

// NewWaiting prepares a look at these levels of the target's delayed exchange. The highest level comes first, since messages go
// down: so a look at one after the other misses none.
func NewWaiting(t *Target, levels []delayed.Level, progress func(queue string)) Waiting {
	w := Waiting{Target: t, progress: progress}
	slices.SortFunc(levels, func(a, b delayed.Level) int { return cmp.Compare(b.Wait(), a.Wait()) })
	for _, l := range levels {
		p := Place{Queue: t.Delayed.Level(l), level: l}
		if !p.IsLong() {
			p.Note = "due within " + l.Longest().String()
		}
		w.Places = append(w.Places, p)
	}
	w.Places = append(w.Places, Place{Queue: t.Delayed.Inbox(), Note: "the sidecar has not taken them yet, so see that it runs"},
		Place{Queue: t.Delayed.Refused(), Note: "due, and refused by a queue"})
	return w
}

// Look passes the messages that wait and that the filter selects to visit, until visit has enough. It takes a number from the
// front of each level for less than a second, and puts them back. Its errors are [transfer.ErrLocked], [transfer.ErrConsumed] after
// looks at the other levels, and others.
func (w *Waiting) Look(ctx context.Context, filter failed.Filter, visit func(*failed.Entry) (enough bool)) (look Look, err error) {
	selector, enough := filter.Selector(), false
	err = w.goOver(ctx, &removal{}, func(e *failed.Entry) {
		if look.Seen++; selector.Selects(e) {
			look.Selected++
			enough = visit(e) || enough
		}
	}, &enough)
	return look, err
}

// goOver looks at one level after the other until it is enough. A removal takes messages out.
func (w *Waiting) goOver(ctx context.Context, r *removal, visit func(*failed.Entry), enough *bool) error {
	conn, _, err := w.connect(ctx, "count")
	if err != nil {
		return err
	}
	defer amqpconn.HangUp(conn.Connection)
	missing, err := w.countAll(ctx, conn)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		err = fmt.Errorf("not in vhost %q: %s. Do --endpoint, --config and the AMQP URI name the same broker?",
			w.Vhost, strings.Join(missing, ", "))
	}
	seen := map[string]string{}
	for i := 0; i < len(w.Places) && !*enough; i++ {
		p := &w.Places[i]
		// Meanwhile, messages of higher levels can have come.
		looks, counted := p.needsLook(ctx, conn)
		if counted != nil {
			return errors.Join(err, counted)
		}
		if !looks {
			continue
		}
		w.progress(p.Queue)
		looked := w.look(ctx, conn, p, seen, r, visit)
		err = errors.Join(err, looked)
		if errors.Is(looked, transfer.ErrConsumed) {
			p.Note = looked.Error()
		} else if looked != nil {
			break
		}
	}
	return err
}

// countAll counts the queues that exist, and wakes quorum queues. It leaves out missing queues, and returns those that are levels.
func (w *Waiting) countAll(ctx context.Context, conn amqpconn.Raw) (missing []string, err error) {
	var places []Place
	for _, p := range w.Places {
		switch _, err := p.count(ctx, conn); {
		case err == nil:
			places = append(places, p)
		case !errors.Is(err, transfer.ErrNoQueue):
			return nil, err
		case p.level.Unit > 0:
			missing = append(missing, p.Queue)
		}
	}
	if w.Places = places; len(places) == 0 {
		return nil, fmt.Errorf("there is no delayed exchange %q in the vhost %q: correct its name or --vhost", w.Delayed, w.Vhost)
	}
	time.Sleep(recount)
	return missing, nil
}

// needsLook counts the messages, and reports whether to look at them. Otherwise, the note says why not, if there are any.
func (p *Place) needsLook(ctx context.Context, conn amqpconn.Raw) (bool, error) {
	consumed, err := p.count(ctx, conn)
	empty := p.Messages == 0 && !consumed
	switch {
	case empty && p.reported > 0 && p.IsLong():
		p.Messages, p.Unseen = int(p.reported), int(p.reported)
		p.Note = "it was emptied in the last seconds, or has no leader, so run the command again"
	case empty:
		p.Note = ""
	case p.Note == "" && p.mean*int64(min(p.Messages, topology.LookSize)) > mostBytes:
		p.Note = "too large for a look, with " + view.Size(int(p.mean)) + " on average"
	}
	return !empty && p.Note == "", err
}

// count counts the messages, all of them as unseen.
func (p *Place) count(ctx context.Context, conn amqpconn.Raw) (consumed bool, err error) {
	count, err := transfer.Queue{Name: p.Queue}.CountOver(ctx, conn)
	if err == nil {
		p.Messages, p.Unseen, p.UnseenFrom = count.Ready, count.Ready, time.Now()
	}
	if count.Ready > 0 {
		p.reported = 0 // from now on, an empty level was emptied
	}
	return count.Consumers > 0, err
}

// look passes messages to visit. It leaves out those that were seen in another place, and have moved on meanwhile.
func (w *Waiting) look(
	ctx context.Context, conn amqpconn.Raw, p *Place, seen map[string]string, r *removal, visit func(*failed.Entry),
) error {
	level, last := *w.Target, time.Time{}
	level.Name, level.Heartbeat = p.Queue, transfer.FrontHeartbeat
	queue := level.queue()
	front, err := queue.Front(ctx, w.Delayed.Lock(), func(message failed.Message) (chosen bool) {
		e := failed.ReadWaiting(message, p.level, w.Delayed, time.Now())
		last = e.Leaves
		if at, before := seen[e.ID]; before && at != p.Queue {
			return false
		}
		seen[e.ID] = p.Queue
		visit(&e)
		return r.chooses(&e)
	}, r.of())
	r.note(front)
	if err != nil {
		return err
	}
	left, err := queue.Unconsumed(ctx, conn)
	if err != nil {
		return err
	}
	// What expired meanwhile is no more. What came meanwhile was not seen.
	remain := front.Seen - front.Taken
	p.Messages, p.Seen, p.Unseen, p.UnseenFrom = max(left, remain), remain, max(0, left-remain), time.Now()
	if front.Cut {
		p.Unseen = max(p.Unseen, front.Ready-front.Seen)
	}
	if longest := p.UnseenFrom.Add(p.level.Wait()); last.After(longest) { // the sidecar's clock is ahead of this one
		last = longest
	}
	if last.After(p.UnseenFrom) {
		p.UnseenFrom = last
	}
	return nil
}
