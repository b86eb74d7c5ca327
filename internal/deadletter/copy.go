package deadletter

import (
	"maps"
	"math"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Copy is the message of a delivery as it can be published in the place of one that AMQP 0-9-1 cannot carry. Why it is another
// becomes its dead-letter-error. It says false if the headers are left out, since they do not fit a frame.
func Copy(d *amqp.Delivery, why string, frameMax int) (m amqp.Publishing, whole bool) {
	m = amqp.Publishing{
		Headers:     amqp.Table{HeaderDeadLetterError: why},
		ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: amqp.Persistent, Priority: d.Priority,
		CorrelationId: d.CorrelationId, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type,
		AppId: d.AppId, Body: d.Body,
	}
	truncate(m.Headers, HeaderDeadLetterError, maxErrorText)
	setAside(&m, d)
	own := m.Headers
	m.Headers = make(amqp.Table, len(d.Headers)+len(own))
	for key, value := range d.Headers {
		if key != headerCC && key != headerBCC && !isCount(key) {
			m.Headers[key] = value
		}
	}
	maps.Copy(m.Headers, own)
	budget := math.MaxInt
	if frameMax > 0 {
		budget = frameMax - redeliveryOverhead
	}
	if headerFrameSize(m) >= 0 && fit(m, budget) == nil {
		return m, true
	}
	m.Headers = own
	return m, false
}

// isCount reports whether a header counts the deliveries of one stay in a queue.
func isCount(key string) bool { return key == "x-delivery-count" || key == "x-acquired-count" }
