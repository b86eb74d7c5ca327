package session

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What the broker may refuse for its size has nothing else under way with it.
func TestLargeMessageGoesAlone(t *testing.T) {
	t.Parallel()
	small, large := &message{}, &message{delivery: amqp.Delivery{Body: make([]byte, alone)}}
	p := &publisher{}
	if !p.ready(small) || !p.ready(large) {
		t.Error("an idle publisher waits")
	}
	p.outstanding = []*message{small}
	if !p.ready(small) || p.ready(large) {
		t.Error("a large message goes with others")
	}
}

// Each message that the broker does not accept makes the others go one at a time for longer.
func TestWariness(t *testing.T) {
	t.Parallel()
	const window = 10
	p := &publisher{outstanding: []*message{{}}}
	for _, want := range []int{10, 20, 40, 80, 160, 320, 640, 640} {
		p.suspects = 3
		if p.slowDown(window); p.suspects != want || p.ready(&message{}) {
			t.Errorf("%d go one at a time, want %d", p.suspects, want)
		}
	}
	p.outstanding = nil
	if !p.ready(&message{}) {
		t.Error("not even one goes")
	}
}
