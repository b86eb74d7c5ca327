package pass

import (
	"context"
	"fmt"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// verifications is how often acknowledgements are repeated at most.
const verifications = 5

// verify reads what was delivered before, and acknowledges what was published: its acknowledgement was lost.
func (r *run) verify(ctx context.Context) error {
	for range verifications {
		again, err := r.verifyOnce(ctx)
		if err != nil {
			r.result.Unverified = true
			return fmt.Errorf("look whether acknowledgements were lost: %w", err)
		}
		if again == 0 {
			return nil
		}
		r.result.Again += again
	}
	return nil
}

func (r *run) verifyOnce(ctx context.Context) (again int, err error) {
	r.show(Verifying)
	// What was published was among the first messages, and comes back there.
	v, _, err := begin(ctx, r.queue, r.ledger, r.expected(), r.job.Scan, func(ready int) int { return ready })
	if err != nil || v == nil {
		return 0, err
	}
	v.surveyed = true
	present, err := v.present(ctx)
	if err != nil {
		v.abandon()
		return 0, err
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
	return again, v.end(ctx)
}

// present reads the queue, and returns what was delivered before of the messages that were published.
func (v *round) present(ctx context.Context) (map[string][]arrival, error) {
	tick := time.NewTicker(idle)
	defer tick.Stop()
	present := map[string][]arrival{}
	for !v.over() {
		select {
		case a := <-v.in.arriving:
			id := failed.ID(a.Message)
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
			if time.Since(v.last) > stuck {
				return nil, errStuck
			}
			v.count(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return present, nil
}
