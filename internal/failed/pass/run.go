package pass

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

const (
	// lastConfirms is how long a pass that ends waits for confirms.
	lastConfirms = 10 * time.Second
	// lastAcks is how long it waits after its last acknowledgement, which is dropped if the consumer ends earlier.
	lastAcks = 250 * time.Millisecond
	// lateness is how far a rate may lag behind.
	lateness = 100 * time.Millisecond
	// worthwhile is how long a round has to last for another to follow when the broker ended it.
	worthwhile = 10 * time.Second
)

var (
	// errNext ends a round that another one follows.
	errNext = errors.New("the next round begins")
	// errUnconfirmed is for a broker that accepts no messages, or has lost its majority.
	errUnconfirmed = fmt.Errorf("the broker has not confirmed all messages within %s", lastConfirms)
)

// run is a job under way.
type run struct {
	queue  Queue
	job    Job
	result Result
	ledger *ledger
	out    *outlet
	// interval is how long a round lasts at most, 0 for any time.
	interval time.Duration
	// accounted says that the queue had exactly what was expected when the round began.
	accounted bool
	// next is when a message may be published again.
	next time.Time
	// ended says that the last message was decided about.
	ended bool
	// stopped is closed when the pass is to end.
	stopped <-chan struct{}
	// dry says that messages vanished: what is left of the queue is what was put back.
	dry bool
	// hurried says that large messages were given up early, since the pass was to end: they may come later.
	hurried bool
	// missing is how many messages are awaited, phase is what the pass does.
	missing int
	phase   Phase
	// shown is when it was last said how far the pass is.
	shown time.Time
	*round
}

// selected is a message that is to be acknowledged.
type selected struct {
	arrival
	id, digest, messageID string
	position              int
}

// Run goes over the queue. The result is that of what was done, also with an error. A context that ends stops
// the pass in good order.
func Run(ctx context.Context, queue Queue, job Job) (Result, error) {
	r := &run{queue: queue, job: job, interval: job.interval(), ledger: newLedger(job.Before), stopped: ctx.Done()}
	if job.Before != nil {
		r.result.Largest = job.Before.Largest
	}
	if job.Publishes {
		conn, err := queue.Open(ctx, "publish")
		if err != nil {
			return r.result, err
		}
		if r.out, err = openOutlet(ctx, conn); err != nil {
			amqpconn.HangUp(conn.Connection)
			return r.result, err
		}
		defer r.out.close()
	} else {
		r.out = &outlet{}
	}
	err := r.rounds(ctx)
	whole := !r.ledger.shared && !r.ledger.missed && r.result.Seen >= r.result.Ready
	r.result.Census = &Census{copies: r.ledger.known, whole: whole}
	if r.result.Interrupted = ctx.Err() != nil; r.result.Interrupted && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return r.result, err
}

// rounds consumes the queue until there is nothing more to do.
func (r *run) rounds(ctx context.Context) error {
	for surveyed := r.job.Before != nil; ; surveyed = true {
		r.phase = Reading
		next, count, err := begin(ctx, r.queue, r.ledger, r.expected(), r.job.Scan, r.job.prefetch, r.waitsFor)
		r.missing = 0
		r.result.Ready, r.result.Consumers = max(r.result.Ready, count.Ready), max(r.result.Consumers, count.Consumers)
		if err != nil || next == nil {
			return err
		}
		next.surveyed, r.round = surveyed, next
		r.forgetWhatStays()
		r.accounted = r.accounts(count)
		ended := r.consume(ctx)
		r.noteVanished()
		again := errors.Is(ended, errNext) || timedOut(ended) && time.Since(r.began) > worthwhile
		if again {
			// Shorter than what the broker has shown that it bears.
			if timedOut(ended) {
				r.interval = time.Since(r.began) / 2
			}
			ended = nil
		}
		err = r.explain(errors.Join(ended, r.finish(ctx)))
		r.result.Seen, r.result.Consumers = max(r.result.Seen, r.seen), max(r.result.Consumers, r.consumers)
		r.result.Largest = max(r.result.Largest, r.largest)
		r.ledger.partial = r.ledger.partial || !surveyed && r.seen < count.Ready
		if len(r.ledger.confirmed) > 0 && !r.ended {
			err = errors.Join(err, r.verify(context.WithoutCancel(ctx)))
		}
		if !again || err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// noteVanished notes what was counted and did not come: somebody has purged the queue, or messages have expired.
func (r *run) noteVanished() {
	if vanished := r.atMost - r.seen; r.empty && vanished > 0 && !r.ledger.shared {
		r.result.Vanished += vanished
		r.dry, r.accounted = true, false
	}
}

// waitsFor says how many messages are awaited, and whether to wait for longer.
func (r *run) waitsFor(missing int, quiet time.Duration) bool {
	r.missing = missing
	if r.shownBefore(time.Second) {
		r.show(r.phase)
	}
	if !r.stops() {
		return quiet < Patience(r.result.Largest)
	}
	const large = 1 << 20
	r.hurried = r.hurried || quiet >= hurry && r.result.Largest >= large
	return quiet < hurry
}

// stops says that the pass is to end.
func (r *run) stops() bool {
	select {
	case <-r.stopped:
		return true
	default:
		return false
	}
}

// forgetWhatStays leaves what the round before has done: what it put back comes again.
func (r *run) forgetWhatStays() {
	r.result.Selected = r.result.Confirmed + r.result.Dropped
	r.result.Returned, r.result.Refused, r.result.Oversized = 0, 0, nil
}

// accounts reports whether what a look has seen, and what was done since, is what is in the queue: nothing else came or went.
func (r *run) accounts(c Count) bool {
	before := r.job.Before
	return before != nil && before.Seen == before.Ready && !r.ledger.partial && c.Ready == r.expected()
}

// expected is how many messages ought to be in the queue, 0 if others may have taken any.
func (r *run) expected() int {
	switch {
	case r.ledger.shared:
		return 0
	case r.dry:
		return r.held
	}
	seen := r.result.Seen
	if r.job.Before != nil {
		seen = max(seen, r.job.Before.Seen)
	}
	return seen - r.result.Confirmed - r.result.Dropped
}

// timedOut says that the consumer held messages for longer than the broker allows. Before 4.3 that closes the
// channel.
func timedOut(err error) bool {
	return errors.Is(err, errCancelled) || isCode(err, preconditionFailed)
}

// consume takes messages until all are seen, the limit is reached, or the context ends.
func (r *run) consume(ctx context.Context) error {
	tick := time.NewTicker(idle)
	defer tick.Stop()
	for !r.over() && !r.limited() && !r.ended {
		var pace <-chan time.Time
		if wait := time.Until(r.next); wait > 0 {
			pace = time.After(wait)
		}
		var err error
		select {
		case a := <-r.taking():
			err = r.take(ctx, a)
		case l := <-r.in.opened:
			r.in.widened(l)
		case reason := <-r.in.broken:
			return r.brokenBy(reason)
		case _, ok := <-r.out.confirms:
			err = r.confirm(context.WithoutCancel(ctx), ok)
		case b, ok := <-r.out.blocked:
			r.alarm(b.Reason, b.Active, ok)
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

func (r *run) limited() bool { return r.job.Limit > 0 && r.result.Selected >= r.job.Limit }

// mayTake says that another message may be selected.
func (r *run) mayTake() bool {
	return r.blocked == "" && !r.out.full() && !time.Now().Before(r.next)
}

func (r *run) taking() <-chan arrival {
	if !r.mayTake() {
		return nil
	}
	return r.in.arriving
}

// take does with a message what was decided.
func (r *run) take(ctx context.Context, a arrival) error {
	entry := failed.Read(a.Message)
	r.note(a, entry.Digest)
	s := selected{arrival: a, id: entry.ID, digest: entry.Digest, messageID: entry.MessageID, position: r.seen}
	var verdict Verdict
	if !r.ledger.done(s.digest, a.Redelivered) {
		verdict = r.job.Decide(&entry)
	}
	if verdict.Last {
		r.ended = true
		r.in.stop()
	}
	switch {
	case verdict.Publish != nil && r.out.exceeds(len(verdict.Publish.Body)):
		r.result.Selected++
		r.oversized(s, *verdict.Publish)
		r.in.widenIfFull(ctx, r.held)
	case verdict.Publish != nil:
		r.result.Selected++
		r.pace()
		s.Body, s.Properties = nil, nil
		r.out.publish(*verdict.Publish, s)
	case verdict.Drop:
		r.result.Selected++
		s.Body, s.Properties = nil, nil
		if r.dropped = append(r.dropped, s); len(r.dropped) >= Window {
			return r.drop()
		}
	default:
		r.hold(ctx)
	}
	return nil
}

// hold keeps a message until the round ends.
func (r *run) hold(ctx context.Context) {
	r.held++
	r.in.widenIfFull(ctx, r.held)
}

// pace sets when the next message may be published. What a late timer missed is made good.
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

// oversized leaves a message that the broker does not take.
func (r *run) oversized(s selected, p failed.Publishing) {
	r.held++
	r.result.Oversized = append(r.result.Oversized, Oversized{
		Size: len(p.Body), Max: r.out.max, ID: s.id, MessageID: strings.Clone(s.messageID), Position: s.position,
	})
	r.done(p, TooLarge)
}

func (r *run) done(p failed.Publishing, o Outcome) {
	if r.job.Done != nil {
		r.job.Done(p, o)
	}
}

// confirm handles the broker's answer to a publish.
func (r *run) confirm(ctx context.Context, ok bool) error {
	if !ok {
		s, reason := r.out.oversized(ctx)
		if s == nil {
			return r.out.unpublished(r.result.Confirmed+r.result.Returned+r.result.Refused, reason)
		}
		r.oversized(s.what, s.Publishing)
		r.out.proceed()
		return nil
	}
	s, outcome, err := r.out.settle()
	if err != nil {
		return err
	}
	switch outcome {
	case Confirmed:
		r.result.Confirmed++
		r.acknowledge(s.what)
	case Returned:
		r.result.Returned++
		r.held++
	case Refused:
		r.result.Refused++
		r.held++
	case TooLarge: // the broker has no answer to it
	}
	r.done(s.Publishing, outcome)
	return nil
}

// acknowledge also says that a copy that comes back is superfluous.
func (r *run) acknowledge(s selected) {
	r.ledger.confirmed[keyOf(s.digest)]++
	r.acked = time.Now()
	// An error says that the channel is closed, which the intake reports.
	_ = s.acknowledge()
}

// drop acknowledges what is dropped once it is kept.
func (r *run) drop() error {
	if len(r.dropped) == 0 {
		return nil
	}
	if r.job.Keep != nil {
		if err := r.job.Keep(); err != nil {
			r.dropped = nil // they stay
			return err
		}
	}
	for _, s := range r.dropped {
		r.result.Dropped++
		r.acknowledge(s)
	}
	r.dropped = r.dropped[:0]
	return nil
}

func (r *run) alarm(reason string, active, ok bool) {
	switch {
	case !ok:
		r.out.blocked = nil // the confirms are closed, too, and say why
	case active:
		r.blocked = reason
	default:
		r.blocked = ""
	}
	r.show(Reading)
}

// tick looks whether anything comes, and says how far the pass is.
func (r *run) tick(ctx context.Context) error {
	if !r.mayTake() || len(r.out.outstanding) > 0 {
		r.last = time.Now()
	}
	quiet := time.Since(r.last)
	if quiet > idle || r.shownBefore(time.Second) {
		r.count(ctx)
	}
	if r.shownBefore(time.Second) {
		r.show(Reading)
	}
	switch {
	case quiet > stuck:
		return errStuck
	case r.interval > 0 && r.held > 0 && time.Since(r.began) > r.interval:
		return errNext
	case quiet > idle:
		return r.drop()
	}
	return nil
}

// shownBefore says that it was not said for so long how far the pass is.
func (r *run) shownBefore(age time.Duration) bool { return time.Since(r.shown) >= age }

func (r *run) show(phase Phase) {
	r.shown, r.phase = time.Now(), phase
	if r.job.Progress == nil {
		return
	}
	p := Progress{Result: r.result, Phase: phase, Missing: r.missing, Waiting: r.missing > 0}
	if r.round != nil {
		p.Blocked, p.Seen = r.blocked, max(p.Seen, r.seen)
		if phase == Reading && r.missing == 0 && time.Since(r.last) > time.Second {
			p.Waiting, p.Missing = true, max(0, r.atMost-r.seen)
		}
	}
	r.job.Progress(p)
}
