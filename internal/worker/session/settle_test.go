package session

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// acknowledged keeps the tags of what was acknowledged.
type acknowledged []uint64

func (a *acknowledged) Ack(tag uint64, _ bool) error {
	*a = append(*a, tag)
	return nil
}
func (a *acknowledged) Nack(uint64, bool, bool) error { return nil }
func (a *acknowledged) Reject(uint64, bool) error     { return nil }

// The library holds back the confirms of what follows an unanswered message. What the broker keeps is
// acknowledged all the same when a session ends, or it would be published once more.
func TestWhatIsAcceptedIsSettled(t *testing.T) {
	t.Parallel()
	var acks acknowledged
	s, _ := detouring(t)
	p := &publisher{returned: map[string]bool{"returned": true}}
	for tag, m := range []*message{
		{publishTag: 1, confirmation: answered(false)},
		{publishTag: 2, confirmation: answered(true)},
		{publishTag: 3, confirmation: answered(true), publishID: "returned"},
		{publishTag: 0, confirmation: answered(true)}, // that of the time before
		{publishTag: 4, confirmation: answered(true)},
	} {
		m.delivery = amqp.Delivery{Acknowledger: &acks, DeliveryTag: uint64(tag)}
		m.verdict = deadletter.Verdict{Action: deadletter.Rescue}
		p.outstanding = append(p.outstanding, m)
	}
	require.NoError(t, s.settleAccepted(p))
	if want := []uint64{1, 4}; !slices.Equal(acks, want) {
		t.Errorf("acknowledged %d, want %d", acks, want)
	}
	if len(p.outstanding) != 3 {
		t.Errorf("%d messages are outstanding, want 3", len(p.outstanding))
	}
}

// A session that has to be over waits for no confirms.
func TestLastConfirmsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Session)
		want   time.Duration
	}{
		"usually":          {func(*Session) {}, lastConfirms},
		"closed":           {func(s *Session) { s.end() }, 0},
		"out of time":      {func(s *Session) { s.drainedBy = time.Now() }, 0},
		"nearly so":        {func(s *Session) { s.drainedBy = time.Now().Add(time.Second) }, time.Second},
		"with time enough": {func(s *Session) { s.drainedBy = time.Now().Add(time.Hour) }, lastConfirms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, _ := detouring(t)
				ctx, end := context.WithCancel(t.Context())
				s.ended, s.end = ctx.Done(), end
				defer end()
				s.inbox.channel = &amqp.Channel{}
				s.publishers.all["orders.retry"] = &publisher{outstanding: []*message{{publishTag: 1, confirmation: answered(false)}}}
				c.change(s)
				began := time.Now()
				s.settleLast()
				if took := time.Since(began); took != c.want+ackGrace {
					t.Errorf("took %s, want %s", took, c.want+ackGrace)
				}
			})
		})
	}
}
