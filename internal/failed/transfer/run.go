package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

const (
	// lastConfirms is how long a run waits for confirms at its end.
	lastConfirms = 10 * time.Second
	// lateness is how far a run can lag behind its rate and still catch up.
	lateness = 100 * time.Millisecond
)

// errUnconfirmed tells that the broker accepts no messages, or has lost its majority.
var errUnconfirmed = fmt.Errorf("the broker has not confirmed all messages within %s", lastConfirms)

// run is a running job.
type run struct {
	queue  Queue
	job    Job
	result Result
	out    *publisher
	// next is the earliest time of the next publish.
	next time.Time
	// ended says that the job's choice on a message was the last one.
	ended bool
	// shown is when progress was last reported.
	shown time.Time
	*round
}

// selected is a message to acknowledge.
type selected struct {
	arrival
	id, messageID string
	position      int
}

// Run goes over the queue once. The result counts the finished work even if there is an error. If the context ends, Run
// finishes in good order and sets [Result.Interrupted].
func Run(ctx context.Context, queue Queue, job Job) (Result, error) {
	r := &run{queue: queue, job: job, out: &publisher{}, result: job.Before}
	if job.Publishes {
		var err error
		if r.out, err = openPublisher(ctx, queue, &r.result, job.Done); err != nil {
			return r.result, err
		}
		defer r.out.close()
	}
	err := r.rounds(ctx)
	if r.result.Interrupted = ctx.Err() != nil; r.result.Interrupted && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return r.result, err
}

// rounds consumes the queue until there is nothing more to do.
func (r *run) rounds(ctx context.Context) error {
	for {
		if err := r.begin(ctx); err != nil || r.round == nil {
			return err
		}
		// Messages that the previous round put back come again.
		r.result.Selected = r.acknowledged()
		r.result.Returned, r.result.Refused, r.result.Oversized = 0, 0, nil
		ended := r.consume(ctx)
		if r.empty && r.result.Consumers == 0 && !r.result.Uncounted { // the queue was purged, or messages expired
			r.result.Vanished += r.atMost - r.seen
		}
		err := r.explain(errors.Join(ended, r.finish(ctx)))
		r.result.Seen = max(r.result.Seen, r.seen)
		if !r.again || err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// consume takes messages until it has seen all, reaches the limit, or the context ends.
func (r *run) consume(ctx context.Context) error {
	tick := time.NewTicker(idle)
	defer tick.Stop()
	for !r.over() {
		var pace <-chan time.Time
		var arriving <-chan arrival
		if wait := time.Until(r.next); wait > 0 {
			pace = time.After(wait)
		}
		if r.mayTake() {
			arriving = r.in.arriving
		}
		var err error
		select {
		case a := <-arriving:
			r.take(ctx, a)
		case l := <-r.in.opened:
			r.in.add(l)
		case reason := <-r.in.broken:
			r.lost = fmt.Errorf("queue %q: %w", r.queue.Name, reason)
			return nil
		case _, ok := <-r.out.confirms:
			err = r.confirm(context.WithoutCancel(ctx), ok)
		case b, ok := <-r.out.alarms:
			r.out.alarm(b, ok)
			r.show(Reading)
		case c := <-r.counts:
			r.counted(c)
		case <-pace:
		case <-tick.C:
			err = r.tick(ctx)
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// over reports whether this round is finished.
func (r *run) over() bool {
	return r.ended || r.seen >= r.atMost || r.empty || r.again || r.job.Limit > 0 && r.result.Selected >= r.job.Limit
}

// mayTake reports whether the run can take another message now.
func (r *run) mayTake() bool { return !r.out.full() && !time.Now().Before(r.next) }

// take carries out the job's choice on a message.
func (r *run) take(ctx context.Context, a arrival) {
	entry := failed.Read(a.Message)
	r.in.conn.Release(a.size())
	r.last, r.empty, r.zeros = time.Now(), false, 0
	r.seen++
	s := selected{arrival: a, id: entry.ID, messageID: entry.MessageID, position: r.seen}
	choice := r.job.Decide(&entry)
	r.ended = choice.Last
	if choice.Publish == nil && !choice.Drop {
		r.hold(ctx)
		return
	}
	r.result.Selected++
	s.Body, s.Properties = nil, nil // otherwise they would stay in memory
	switch {
	case choice.Publish == nil:
		r.result.Dropped++
		s.acknowledge()
	case r.out.publish(*choice.Publish, s):
		r.pace()
	default:
		r.hold(ctx)
	}
}

// hold keeps a message until the round ends.
func (r *run) hold(ctx context.Context) {
	r.in.held.Add(1)
	if r.job.acts() || r.in.next > 0 { // otherwise the queue has handed over all
		r.in.widenIfFull(ctx)
	}
}

// pace sets when the next message can be published. It makes up for a late timer, up to lateness.
func (r *run) pace() {
	if r.job.Rate <= 0 {
		return
	}
	earliest := time.Now().Add(-lateness)
	if r.next.Before(earliest) {
		r.next = earliest
	}
	r.next = r.next.Add(time.Duration(float64(time.Second) / r.job.Rate))
}

// confirm handles the broker's answer to a publish.
func (r *run) confirm(ctx context.Context, ok bool) error {
	s, confirmed, err := r.out.confirm(ctx, ok)
	switch {
	case err != nil:
	case confirmed:
		s.what.acknowledge()
	default:
		r.in.held.Add(1)
	}
	return err
}

// tick checks whether messages still come, and reports progress.
func (r *run) tick(ctx context.Context) error {
	if !r.mayTake() || len(r.out.outstanding) > 0 {
		r.last = time.Now()
	}
	quiet, shows := time.Since(r.last), time.Since(r.shown) >= time.Second
	if !r.result.Uncounted && (quiet > idle || shows) {
		r.count(ctx)
	}
	if shows {
		r.show(Reading)
	}
	switch {
	case r.result.Uncounted && quiet > quietUncounted:
		r.empty = true
	case quiet > stuck:
		return errStuck
	case r.job.Rate > 0 && r.in.held.Load() > 0 && time.Since(r.began) > cmp.Or(r.job.Interval, defaultInterval):
		r.again = true
	}
	return nil
}

func (r *run) show(phase Phase) {
	r.shown = time.Now()
	if r.job.Progress == nil {
		return
	}
	p := Progress{Result: r.result, Phase: phase, Blocked: r.out.blocked}
	p.Seen = max(p.Seen, r.seen)
	if phase == Reading && time.Since(r.last) > time.Second {
		if p.Waiting = true; !p.Uncounted {
			p.Missing = max(0, r.atMost-r.seen)
		}
	}
	r.job.Progress(p)
}

// finish ends a round in good order: it waits for confirms, acknowledges confirmed messages and puts all others back.
func (r *run) finish(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	r.show(Finishing)
	err := r.takeConfirms(ctx)
	ended := r.end(ctx)
	r.result.Unverified = (ended != nil || r.result.Uncounted) && r.acknowledged() > 0
	return errors.Join(err, ended)
}

func (r *run) acknowledged() int { return r.result.Confirmed + r.result.Dropped }

// takeConfirms waits up to lastConfirms for the broker's answers.
func (r *run) takeConfirms(ctx context.Context) error {
	deadline := time.NewTimer(lastConfirms)
	defer deadline.Stop()
	for len(r.out.outstanding) > 0 {
		select {
		case _, ok := <-r.out.confirms:
			if err := r.confirm(ctx, ok); err != nil {
				return r.out.uncertain(err)
			}
		case a := <-r.in.arriving:
			r.in.conn.Release(a.size()) // not read
			r.in.held.Add(1)
		case err := <-r.in.broken:
			r.lost = fmt.Errorf("queue %q: %w", r.queue.Name, err) // publishes still wait for confirms
		case l := <-r.in.opened:
			r.in.add(l)
		case <-deadline.C:
			return r.out.uncertain(errUnconfirmed)
		}
	}
	return nil
}
