package worker

import (
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// message is a delivery that is not acknowledged yet.
type message struct {
	delivery amqp.Delivery
	verdict  deadletter.Verdict

	// publishID, publishTag and publishedAt are those of the latest publish.
	publishID   string
	publishTag  uint64
	publishedAt time.Time

	// holds is how often in a row the message was held, and heldUntil when it is published again.
	holds     int
	heldUntil time.Time
}

// heldMessages are messages whose publish did not succeed, the next one to try first.
type heldMessages []*message

// hold keeps a message for a moment that doubles each time, from 100 ms to 2 s.
func (h *heldMessages) hold(m *message, now time.Time) {
	const shortest, longest = 100 * time.Millisecond, 2 * time.Second
	wait := longest
	if m.holds < 5 {
		wait = shortest << m.holds
	}
	m.holds++
	m.heldUntil = now.Add(wait)
	at, _ := slices.BinarySearchFunc(*h, m, func(a, b *message) int { return a.heldUntil.Compare(b.heldUntil) })
	*h = slices.Insert(*h, at, m)
}

// due takes the next message whose moment is over, nil if there is none.
func (h *heldMessages) due(now time.Time) *message {
	if len(*h) == 0 || (*h)[0].heldUntil.After(now) {
		return nil
	}
	m := (*h)[0]
	*h = slices.Delete(*h, 0, 1)
	return m
}
