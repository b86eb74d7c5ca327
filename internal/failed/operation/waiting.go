package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	// recount is how long after the first count queues without messages are counted again. A quorum queue counts 0 while its leader is busy.
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
	// Note is why the place was only counted.
	Note string `json:"note,omitempty"`

	level delayed.Level
	// mean is the size of a body on average, if the management API tells it.
	mean int64
	// consumed says that it has a consumer, which can hold messages.
	consumed bool
	// Against is what speaks against a look, as the management API tells.
	Against string `json:"-"`
}

// NewPlaces are a delayed exchange's queues where messages wait. The highest level comes first, since messages go down: so a look
// at one after the other misses none.
func NewPlaces(n delayed.Names, levels []delayed.Level) []Place {
	var places []Place
	for _, l := range levels {
		places = append(places, Place{Queue: n.Level(l), level: l})
	}
	slices.SortFunc(places, func(a, b Place) int { return cmp.Compare(b.level.Wait(), a.level.Wait()) })
	return append(places, Place{Queue: n.Inbox(), Against: "the sidecar has not taken them yet, so see that it runs"},
		Place{Queue: n.Refused(), Against: "due, and refused by a queue"})
}

// Weigh notes the size of the messages. It takes the statistics of the management API, which lag.
func (p *Place) Weigh(messages, bytes int64) {
	if messages > 0 {
		p.mean = bytes / messages
	} else if p.Against == "" && p.IsLong() {
		p.Against = "the management API does not know their size yet, so run the command again in some seconds"
	}
}

// IsLong reports whether the place is a level that waits long enough for a look.
func (p *Place) IsLong() bool { return p.level.Wait() >= shortestLook }

// only says why the messages are only counted, "" if they are looked at.
func (p *Place) only() string {
	switch {
	case p.Against != "":
	case !p.IsLong():
		return "due within " + p.level.Longest().String()
	case p.mean*int64(min(p.Messages, topology.LookSize)) > mostBytes:
		return "too large for a look, with " + view.Size(int(p.mean)) + " on average"
	}
	return p.Against
}

// Waiting looks at the messages of a delayed exchange that wait.
type Waiting struct {
	*Target
	Places []Place
	// Progress is called before the look at each place; it can be nil.
	Progress func(place *Place)

	// seen has the place of each message that was seen, since it can move on meanwhile.
	seen map[string]string
}

// ErrPartly says that some levels were not looked at.
var ErrPartly = errors.New("not all levels were looked at")

// Look passes the messages that wait to visit, until visit has enough. It takes a number from the front of each level for less
// than a second, and puts them back. Its errors are [transfer.ErrNoQueue], [transfer.ErrLocked], [ErrPartly] and others.
func (w *Waiting) Look(ctx context.Context, visit func(m *failed.Waiting) (enough bool)) error {
	conn, _, err := w.connect(ctx, "count")
	if err != nil {
		return err
	}
	defer amqpconn.HangUp(conn.Connection)
	if err := w.countAll(ctx, conn); err != nil {
		return err
	}
	w.seen = map[string]string{}
	enough := false
	var ended, partly error
	for i := range w.Places {
		p := &w.Places[i]
		// Meanwhile, messages of higher levels can have come, which look empty no more.
		if err := p.count(ctx, conn); err != nil && !errors.Is(err, transfer.ErrNoQueue) {
			return err
		}
		if p.Messages == 0 && !p.consumed || enough {
			continue
		}
		if p.Unseen, p.UnseenFrom, p.Note = p.Messages, time.Now(), p.only(); p.Note != "" {
			continue
		}
		if ended != nil {
			p.Note = "not looked at"
			continue
		}
		if w.Progress != nil {
			w.Progress(p)
		}
		err := w.look(ctx, conn, p, func(m *failed.Waiting) { enough = visit(m) || enough })
		switch {
		case errors.Is(err, transfer.ErrConsumed):
			p.Note, partly = err.Error(), ErrPartly
		case !errors.Is(err, transfer.ErrNoQueue):
			ended = err
		}
	}
	return cmp.Or(ended, partly)
}

func (w *Waiting) look(ctx context.Context, conn amqpconn.Raw, p *Place, visit func(*failed.Waiting)) error {
	queue := transfer.Queue{Name: p.Queue, Open: func(ctx context.Context, purpose string) (amqpconn.Raw, error) {
		client := w.client(purpose)
		client.Heartbeat = transfer.FrontHeartbeat
		conn, _, err := w.connectAs(ctx, client)
		return conn, err
	}}
	var last time.Time
	front, err := queue.Front(ctx, w.Delayed.Lock(), func(message failed.Message) {
		m := failed.ReadWaiting(message, p.level, w.Delayed, time.Now())
		last = m.Leaves
		if at, before := w.seen[m.ID]; before && at != p.Queue {
			return
		}
		w.seen[m.ID] = p.Queue
		visit(&m)
	})
	if err != nil {
		return err
	}
	p.Seen, p.UnseenFrom = front.Seen, time.Time{}
	if err := p.awaitBack(ctx, conn); err != nil {
		return err
	}
	// What expired meanwhile is no more. What came meanwhile was not seen.
	if p.Unseen = max(0, p.Messages-p.Seen); front.Cut {
		p.Unseen = max(p.Unseen, front.Ready-front.Seen)
	}
	if now := time.Now(); p.Unseen > 0 {
		if p.UnseenFrom = now; last.After(now) {
			p.UnseenFrom = last
		}
	}
	return nil
}

// awaitBack counts the messages once no look holds any.
func (p *Place) awaitBack(ctx context.Context, conn amqpconn.Raw) error {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if err := p.count(ctx, conn); err != nil || !p.consumed || time.Since(began) > time.Second {
			return err
		}
	}
}

func (p *Place) count(ctx context.Context, conn amqpconn.Raw) error {
	count, err := transfer.Queue{Name: p.Queue}.CountOver(ctx, conn)
	p.Messages, p.consumed = count.Ready, count.Consumers > 0 && p.IsLong()
	return err
}

// countAll requires that the delayed exchange exists, and wakes quorum queues, which count 0 while their leader is busy.
func (w *Waiting) countAll(ctx context.Context, conn amqpconn.Raw) error {
	is, err := transfer.HasExchange(ctx, conn, w.Delayed.UnroutedExchange())
	if !is && err == nil {
		err = w.Missing()
	}
	if err != nil {
		return err
	}
	empty := false
	for i := range w.Places {
		if err := w.Places[i].count(ctx, conn); err != nil && !errors.Is(err, transfer.ErrNoQueue) {
			return err
		}
		empty = empty || w.Places[i].Messages == 0
	}
	if empty {
		time.Sleep(recount)
	}
	return nil
}

// Missing is the error about a delayed exchange that does not exist.
func (w *Waiting) Missing() error {
	return fmt.Errorf("there is no delayed exchange %q in the vhost %q: correct its name or --vhost", w.Delayed, w.Vhost)
}

// CompleteUntil is the due time until which all messages were seen, zero if all were seen. It leaves aside the places that are
// never looked at.
func (w *Waiting) CompleteUntil() (until time.Time) {
	for _, p := range w.Places {
		if p.IsLong() && p.Unseen > 0 && (until.IsZero() || p.UnseenFrom.Before(until)) {
			until = p.UnseenFrom
		}
	}
	return until
}
