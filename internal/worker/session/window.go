package session

import amqp "github.com/rabbitmq/amqp091-go"

const (
	// bytesPerMessage is how large the messages in flight may be on average for there to be as many as the window has.
	bytesPerMessage = 32 << 10
	// crowd is how many times the window in bytes may be on its way before fewer messages are asked for.
	crowd = 4
)

// WindowBytes is the window in bytes of bodies. What comes when it is exceeded stays in the network, and with the
// broker, until there is room: the connection does not read it.
func WindowBytes(messages int) int { return messages * bytesPerMessage }

// window follows how much is in flight. A prefetch counts messages, and the broker keeps in memory what it has sent
// and nobody reads: so it is asked for as many as fit the window in bytes, going by the size of those before.
type window struct {
	messages int
	inFlight int
	// held are the bytes of the bodies in flight.
	held int
	// sampled is how many messages were finished since they are taken one by one, and sampledBytes their size.
	sampled, sampledBytes int
	// rest is the prefetch of the second consumer.
	rest int
}

// received counts a delivery.
func (w *window) received(d amqp.Delivery) {
	w.inFlight++
	w.held += len(d.Body)
}

// settled counts a message that is acknowledged or rejected.
func (w *window) settled(d amqp.Delivery) {
	w.inFlight--
	w.held -= len(d.Body)
	w.sampled++
	w.sampledBytes += len(d.Body)
}

// widen chooses the prefetch of the second consumer. It is one at least, since a message that is kept must not stop
// the others.
func (w *window) widen() int {
	average := (w.sampledBytes + w.held) / max(1, w.sampled+w.inFlight)
	w.rest = max(1, min(w.messages, WindowBytes(w.messages)/max(1, average))-1)
	return w.rest
}

// narrow begins a new sample.
func (w *window) narrow() { w.sampled, w.sampledBytes, w.rest = 0, 0, 0 }

// crowded reports whether there may be much more on its way than fits.
func (w *window) crowded() bool {
	limit := WindowBytes(w.messages)
	return w.rest > 1 && w.held > limit && w.held/max(1, w.inFlight)*w.rest > crowd*limit
}
