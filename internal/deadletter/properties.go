package deadletter

import amqp "github.com/rabbitmq/amqp091-go"

// DirectReplyTo is the reply-to that a broker replaces by the address of the channel that publishes, if that awaits replies.
// It closes any other channel over it, and what is under way there would be published once more. Only from other
// protocols than AMQP 0-9-1 can a queue have a message with it; no consumer could answer to it. The address that
// took its place is another one, and passes.
const DirectReplyTo = "amq.rabbitmq.reply-to"

// setAside makes headers of the properties over which the broker would close the channel of whoever did not set them.
func setAside(m *amqp.Publishing, d *amqp.Delivery) {
	if d.UserId != "" {
		m.Headers[HeaderUserID] = d.UserId
	}
	if m.ReplyTo = d.ReplyTo; d.ReplyTo == DirectReplyTo {
		m.ReplyTo, m.Headers[HeaderReplyTo] = "", d.ReplyTo
	}
}
