package deadletter

import amqp "github.com/rabbitmq/amqp091-go"

// DirectReplyTo is the reply-to that a broker replaces by the address of the channel that publishes, if that awaits replies.
// It closes any other channel over it, and what is under way there would be published once more. Only from other
// protocols than AMQP 0-9-1 can a queue have a message with it; no consumer could answer to it. The address that
// took its place is another one, and passes.
const DirectReplyTo = "amq.rabbitmq.reply-to"

// Republishing is the message of a delivery as it can be published again, with these headers, to which it adds the properties that
// cannot be. It is persistent, and has no expiration.
func Republishing(d *amqp.Delivery, headers amqp.Table) amqp.Publishing {
	m := amqp.Publishing{
		Headers:         headers,
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		DeliveryMode:    amqp.Persistent,
		Priority:        d.Priority,
		CorrelationId:   d.CorrelationId,
		MessageId:       d.MessageId,
		Timestamp:       d.Timestamp,
		Type:            d.Type,
		AppId:           d.AppId,
		Body:            d.Body,
	}
	setAside(&m, d)
	return m
}

// isSetAside reports whether a header has a property that a worker set aside: that of this pipeline, of another one, or of a
// delayed exchange.
func isSetAside(key string) bool {
	return key == HeaderUserID || key == HeaderReplyTo || key == HeaderDeliveryMode
}

// setAside makes headers of the properties over which the broker would close the channel of whoever did not set them.
func setAside(m *amqp.Publishing, d *amqp.Delivery) {
	if d.UserId != "" {
		m.Headers[HeaderUserID] = d.UserId
	}
	if m.ReplyTo = d.ReplyTo; d.ReplyTo == DirectReplyTo {
		m.ReplyTo, m.Headers[HeaderReplyTo] = "", d.ReplyTo
	}
}
