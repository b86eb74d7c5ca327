//go:build load

package loadtest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// rejectedShare of the deliveries is rejected.
const rejectedShare = 0.3

// perSecond is how many messages are published.
func perSecond() int {
	if testing.Short() {
		return 50
	}
	return 200
}

// slowness is how long a consumer of a queue with a length limit takes for a message, so that the queue gets full.
func slowness() time.Duration { return 8 * time.Second / time.Duration(perSecond()) }

// follow starts a consumer of each queue that is in use, and ends those of the others.
func (l *load) follow(t *testing.T) {
	t.Helper()
	for _, queue := range l.modes.atLeast(draining) {
		if l.consumers[queue] == nil {
			l.consumers[queue] = l.consume(t, queue)
		}
	}
	for queue, ch := range l.consumers {
		if ch != nil && l.modes.get(queue) == unused {
			require.NoError(t, ch.Cancel(queue, false))
			l.consumers[queue] = nil
		}
	}
}

// consume processes or rejects what comes, in the way of the queue's mode.
func (l *load) consume(t *testing.T, queue string) *amqp.Channel {
	t.Helper()
	return l.each(t, queue, 20, func(d amqp.Delivery) {
		mode := l.modes.get(queue)
		if mode == limited {
			time.Sleep(slowness())
		}
		l.answer(t, d, mode >= limited && rand.Float64() < rejectedShare)
	})
}

// each calls handle with whatever comes to a queue.
func (l *load) each(t *testing.T, queue string, prefetch int, handle func(amqp.Delivery)) *amqp.Channel {
	t.Helper()
	ch, deliveries := l.Consume(t, queue, prefetch)
	go func() {
		for d := range deliveries {
			handle(d)
		}
	}()
	return ch
}

// answer rejects or processes a message, and enters that.
func (l *load) answer(t *testing.T, d amqp.Delivery, rejects bool) {
	if rejects {
		l.ledger.with(func() { l.ledger.rejections++ })
		l.check(t, d, d.Reject(false))
	} else if l.check(t, d, d.Ack(false)) {
		l.ledger.with(func() { l.ledger.processed[d.MessageId]++ })
	}
}

// check reports what a call failed with, unless the test has ended.
func (l *load) check(t *testing.T, d amqp.Delivery, err error) bool {
	if err != nil && t.Context().Err() == nil {
		t.Errorf("%s: %v", d.MessageId, err)
	}
	return err == nil
}

// collectFailed enters what is parked, and why.
func (l *load) collectFailed(t *testing.T, queue string) {
	t.Helper()
	deliveries, err := l.Channel(t).Consume(queue, "", true, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for d := range deliveries {
			reason, _ := d.Headers["dead-letter-reason"].(string)
			l.ledger.with(func() { l.ledger.failed[d.MessageId] = append(l.ledger.failed[d.MessageId], reason) })
		}
	}()
}

// publish publishes to the queues in use until the context ends, and then waits for the confirms.
func (l *load) publish(ctx context.Context, t *testing.T, ch *amqp.Channel) {
	returns := ch.NotifyReturn(make(chan amqp.Return, perSecond()))
	go func() {
		for r := range returns {
			l.ledger.with(func() { l.ledger.returned[r.MessageId] = true })
		}
	}()
	var settling sync.WaitGroup
	defer settling.Wait()
	ticker := time.NewTicker(time.Second / time.Duration(perSecond()))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		queues := l.modes.atLeast(acked)
		slices.Sort(queues)
		queue := queues[rand.IntN(len(queues))]
		id := fmt.Sprintf("%06d %s", n, queue)
		// Not the context: what was begun is finished.
		confirm, err := ch.PublishWithDeferredConfirmWithContext(context.WithoutCancel(ctx), "", queue, true, false,
			amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Body: []byte(id)})
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("publish: %v", err)
			}
			return
		}
		settling.Go(func() { // enters whether the broker has taken it
			taken := confirm.Wait()
			l.ledger.with(func() {
				if taken {
					l.ledger.published[id] = true
				} else {
					l.ledger.refused++
				}
			})
		})
	}
}

// ledger knows what became of each message, by its id.
type ledger struct {
	mu        sync.Mutex
	published map[string]bool
	// delivered and first are how often and since when, if a consumer enters it.
	delivered map[string]int
	first     map[string]time.Time
	processed map[string]int
	// failed has the reasons for which messages were parked.
	failed map[string][]string
	// returned and refused were never the broker's. What is returned is confirmed, too.
	returned            map[string]bool
	refused, rejections int
}

func newLedger() *ledger {
	return &ledger{
		published: map[string]bool{}, delivered: map[string]int{}, first: map[string]time.Time{},
		processed: map[string]int{}, failed: map[string][]string{}, returned: map[string]bool{},
	}
}

func (l *ledger) with(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// sent counts the published messages.
func (l *ledger) sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.published)
}

// missing lists what was published and has neither been processed nor parked.
func (l *ledger) missing() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for id := range l.published {
		if l.processed[id] == 0 && len(l.failed[id]) == 0 && !l.returned[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// duplicated counts the messages that ended more than once.
func (l *ledger) duplicated() int {
	n := 0
	for id := range l.published {
		if l.processed[id]+len(l.failed[id]) > 1 {
			n++
		}
	}
	return n
}

// String is the balance so far.
func (l *ledger) String() string { return l.balance("under way") }

// balance calls what has not ended by this word.
func (l *ledger) balance(rest string) string {
	missing := l.missing()
	l.mu.Lock()
	defer l.mu.Unlock()
	reasons := map[string]int{}
	for _, why := range l.failed {
		reasons[why[0]]++
	}
	return fmt.Sprintf("published %d, processed %d, failed %d (%v), duplicated %d, %s %d; rejected %d times, refused by the broker %d",
		len(l.published), len(l.processed), len(l.failed), reasons, l.duplicated(), rest, len(missing), l.rejections, l.refused+len(l.returned))
}

// mode is how the application treats a work queue. Only a queue of the pipeline may be rejected from:
// elsewhere the broker drops what is rejected.
type mode int

const (
	unused   mode = iota // nothing is published or consumed
	draining             // nothing is published any more, what is there is processed
	acked                // everything that is published is processed
	limited              // like rejected, but consumed more slowly than published
	rejected
)

// modes are those of all work queues; they change while the load runs.
type modes struct {
	mu sync.RWMutex
	of map[string]mode
}

func (m *modes) get(queue string) mode {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.of[queue]
}

func (m *modes) set(of map[string]mode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of = of
}

// atLeast lists the queues of this mode and of those that come after it.
func (m *modes) atLeast(least mode) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var queues []string
	for queue, mode := range m.of {
		if mode >= least {
			queues = append(queues, queue)
		}
	}
	return queues
}

// during is what may be done while one changes into the other: what both allow.
func during(before, after map[string]mode) map[string]mode {
	both := map[string]mode{}
	for queue, mode := range before {
		both[queue] = min(mode, after[queue])
	}
	return both
}

// drained is the same with queues that go out of use still consumed.
func drained(before, between map[string]mode) (modes map[string]mode, some bool) {
	modes = maps.Clone(between)
	for queue, mode := range before {
		if mode != unused && between[queue] == unused {
			modes[queue], some = draining, true
		}
	}
	return modes, some
}
