package pass

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// verifications is how often acknowledgements are repeated at most.
const verifications = 5

var errStopped = errors.New("stopped while messages were awaited")

// verify acknowledges what was published and is in the queue still: its acknowledgement was lost. It reads what was delivered
// before, unless the number of messages alone tells that there is none.
func (r *run) verify(ctx context.Context) error {
	if complete, err := r.complete(ctx); err == nil && complete {
		return nil
	}
	var err error
	for range verifications {
		var again int
		if again, err = r.verifyOnce(ctx); err == nil && again == 0 {
			r.result.Unverified = r.hurried
			return nil
		}
		r.result.Again += again
		if err != nil && !r.mayTryAgain(err) {
			break
		}
	}
	if err != nil {
		r.result.Unverified = true
		err = fmt.Errorf("look whether acknowledgements were lost: %w", err)
	}
	return err
}

// mayTryAgain waits, unless that is of no use: a connection that was cut can be opened again.
func (r *run) mayTryAgain(err error) bool {
	var unreadable *UnreadableError
	if errors.As(err, &unreadable) {
		return false
	}
	select {
	case <-r.stopped:
		return false
	case <-time.After(time.Second):
		return true
	}
}

// complete reports whether the queue has as many messages as it ought to. That is no proof if the broker has ended the round,
// others took part, or messages came or went for another reason since they were looked at.
func (r *run) complete(ctx context.Context) (bool, error) {
	expected := r.expected()
	if !r.accounted || r.lost || r.ledger.shared || r.ledger.missed || expected == 0 {
		return false, nil
	}
	r.show(Verifying)
	conn, err := r.queue.Open(ctx, "verify")
	if err != nil {
		return false, err
	}
	defer amqpconn.HangUp(conn.Connection)
	complete, err := r.queue.stays(ctx, conn, expected, r.waitsFor)
	if r.missing > 0 && !complete { // they will not come
		r.dry, r.held = true, 0
	}
	r.missing = 0
	return complete, err
}

func (r *run) verifyOnce(ctx context.Context) (again int, err error) {
	r.show(Verifying)
	// What was published was among the first messages, and comes back there.
	v, _, err := begin(ctx, r.queue, r.ledger, r.expected(), r.job.Scan, func(ready int) int { return ready }, r.waitsFor)
	r.missing = 0
	if err != nil || v == nil {
		return 0, err
	}
	v.surveyed = true
	present, err := v.present(ctx, r.stops)
	if err != nil {
		v.abandon()
		return 0, v.explain(err)
	}
	r.result.Doubled = 0
	for id, copies := range present {
		certain, doubtful := r.ledger.surplus(id, len(copies))
		r.result.Doubled += doubtful
		for _, a := range copies[:certain] {
			if err := a.acknowledge(); err != nil {
				v.abandon()
				return 0, err
			}
			again++
		}
	}
	if again > 0 {
		time.Sleep(lastAcks)
	}
	// What is held comes back also if the connection is cut now, and what was acknowledged is looked at again.
	_ = v.end(ctx)
	return again, nil
}

// present reads the queue, and returns what was delivered before of the messages that were published.
func (v *round) present(ctx context.Context, stops func() bool) (map[string][]arrival, error) {
	tick := time.NewTicker(idle)
	defer tick.Stop()
	present := map[string][]arrival{}
	for !v.over() {
		select {
		case a := <-v.in.arriving:
			id := failed.Digest(a.Message)
			v.note(a, id)
			v.held++
			v.in.widenIfFull(ctx, v.held)
			if a.Redelivered && v.ledger.confirmed[keyOf(id)] > 0 {
				a.Body, a.Properties = nil, nil
				present[id] = append(present[id], a)
			}
		case l := <-v.in.opened:
			v.in.widened(l)
		case err := <-v.in.broken:
			return nil, v.brokenBy(err)
		case c := <-v.counts:
			v.counted(c)
		case <-tick.C:
			switch quiet := time.Since(v.last); {
			case quiet > stuck:
				return nil, errStuck
			case quiet > hurry && stops():
				return nil, errStopped
			}
			v.count(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return present, nil
}
