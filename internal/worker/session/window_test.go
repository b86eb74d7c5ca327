package session

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestSecondConsumerHasAsManyMessagesAsFit(t *testing.T) {
	t.Parallel()
	const kib, mib = 1 << 10, 1 << 20
	for name, c := range map[string]struct {
		messages, size int
		want           int
	}{
		"small":                   {256, kib, 255},
		"no body":                 {256, 0, 255},
		"just as large":           {256, bytesPerMessage, 255},
		"larger":                  {256, 64 * kib, 127},
		"large":                   {256, mib, 7},
		"larger than all of them": {256, 16 * mib, 1},
		"a small window":          {2, 16 * mib, 1},
	} {
		w := window{messages: c.messages}
		for range rampAfter {
			d := amqp.Delivery{Body: make([]byte, c.size)}
			w.received(d)
			w.settled(d)
		}
		if got := w.widen(); got != c.want || w.crowded() {
			t.Errorf("%s: a prefetch of %d, want %d", name, got, c.want)
		}
	}
}

func TestWindowIsCrowdedByLargeMessages(t *testing.T) {
	t.Parallel()
	small, large := amqp.Delivery{Body: make([]byte, 1<<10)}, amqp.Delivery{Body: make([]byte, 16<<20)}
	w := window{messages: 256, rest: 255}
	for range 200 {
		w.received(small)
	}
	w.received(large)
	if w.crowded() {
		t.Error("crowded by one large message among many")
	}
	w = window{messages: 256, rest: 255}
	w.received(large)
	if !w.crowded() {
		t.Error("not crowded by large messages")
	}
	w.narrow()
	if w.crowded() {
		t.Error("crowded without a second consumer")
	}
}
