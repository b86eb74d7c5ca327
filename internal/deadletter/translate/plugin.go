package translate

import "time"

// DecodePlugin is [Decode] for a message that the plugin rabbitmq_amqp1_0 of RabbitMQ 3 has delivered. The plugin
// leaves a message as it is, and gives AMQP 0-9-1 a second version of some properties: a text, or any bytes. The broker
// fails over what is neither, or too long. What AMQP 0-9-1 itself has added, such as x-death, the plugin keeps to itself.
func DecodePlugin(raw []byte) (Message, error) {
	fails := false
	m, err := decode(raw, func(t *translation) {
		t.Undeliverable = false
		t.pluginProperties()
		fails = t.Undeliverable
	})
	m.Undeliverable = fails
	return m, err
}

func (t *translation) pluginProperties() {
	p, d := t.properties, &t.Delivery
	d.MessageId = t.pluginText("message-id", p.at(messageID))
	d.CorrelationId = t.pluginText("correlation-id", p.at(correlationID))
	d.ReplyTo = t.pluginText("reply-to", p.at(replyTo))
	d.ContentType = t.pluginText("content-type", p.at(contentType))
	d.ContentEncoding = t.pluginText("content-encoding", p.at(contentEncoding))
	switch p.at(creationTime).(type) {
	case nil, time.Time, int8, uint8, int16, uint16, int32, uint32, int64, uint64:
	default:
		t.change("property", "creation-time", "no time, left out")
	}
}

// pluginText is a property that the plugin makes a short string of.
func (t *translation) pluginText(name string, value any) string {
	s := text(value)
	switch v := value.(type) {
	case nil, string, symbol:
	case []byte:
		s = string(v)
	case uuid:
		return "urn:uuid:" + v.String()
	default:
		how := "no text, written as text"
		if s == "" {
			how = "no text, left out"
		}
		t.change("property", name, "%s", how)
	}
	if len(s) > maxShortString {
		t.change("property", name, "%d bytes, left out: %.1024q", len(s), s)
		return ""
	}
	return s
}
