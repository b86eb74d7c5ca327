package deadletter

import (
	"maps"
	"math"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Copy is the message of a delivery as it can be published in the place of one that AMQP 0-9-1 cannot carry. Why it is another
// becomes its dead-letter-error. It says false if the headers are left out, since they do not fit a frame.
func Copy(d *amqp.Delivery, why string, frameMax int) (m amqp.Publishing, whole bool) {
	m = Republishing(d, amqp.Table{})
	SetError(m.Headers, why)
	own := m.Headers
	m.Headers = make(amqp.Table, len(d.Headers)+len(own))
	for key, value := range d.Headers {
		if !IsAddress(key) && !isCount(key) {
			m.Headers[key] = value
		}
	}
	maps.Copy(m.Headers, own)
	budget := math.MaxInt
	if frameMax > 0 {
		budget = frameMax - RedeliveryOverhead
	}
	if fit(m, budget) == nil {
		return m, true
	}
	m.Headers = own
	return m, false
}

// isCount reports whether a header counts the deliveries of one stay in a queue.
func isCount(key string) bool { return key == "x-delivery-count" || key == "x-acquired-count" }
