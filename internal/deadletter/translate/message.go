// Package translate turns messages of AMQP 1.0 into messages of AMQP 0-9-1. It does so as RabbitMQ 4.0 and later does
// when clients of the two protocols exchange messages.
//
// The broker fails on some values, and closes the consumer's connection. This package replaces those values or leaves
// them out, and reports each change. It is pure: bytes go in, a delivery comes out.
package translate

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// maxShortString is the longest key or property that AMQP 0-9-1 can carry, in bytes.
const maxShortString = 255

// encodedType is the type of messages whose body is not data. Their body has the encoded sections.
const encodedType = "amqp-1.0"

// Fields of the sections that are lists.
const (
	headerDurable, headerPriority = 0, 1

	messageID, userID, replyTo, correlationID = 0, 1, 4, 5
	contentType, contentEncoding              = 6, 7
	creationTime, groupID                     = 9, 10
)

// Message is the delivery that a client of AMQP 0-9-1 would get if the broker could deliver it.
type Message struct {
	// Delivery has all that a publish and a decision need.
	Delivery amqp.Delivery
	// Undeliverable says that the broker fails to deliver the message to clients of AMQP 0-9-1.
	Undeliverable bool
	// Changes say which values were replaced or left out.
	Changes []string
}

// translation is a message during its translation.
type translation struct {
	sections
	Message
}

// Decode translates an encoded message of AMQP 1.0. It returns an error if the bytes are no such message.
func Decode(raw []byte) (Message, error) {
	return decode(raw, (*translation).translateProperties)
}

func decode(raw []byte, properties func(*translation)) (Message, error) {
	parts, err := read(raw)
	if err != nil {
		return Message{}, err
	}
	t := &translation{sections: parts}
	t.Delivery.Headers = amqp.Table{}
	t.Delivery.Body = parts.body
	t.transport()
	t.translateAnnotations()
	t.checkFooter()
	t.shared()
	properties(t)
	for _, p := range t.appValues {
		if key, ok := p.key.(string); ok && len(key) <= maxShortString { // the broker leaves other properties out
			t.set("application property", key, p.value)
		}
	}
	if parts.encoded {
		t.Delivery.Type = encodedType
	}
	return t.Message, nil
}

// transport translates the header and the annotations that say where the message was published.
func (t *translation) transport() {
	t.Delivery.DeliveryMode = amqp.Persistent
	if durable, known := t.header.at(headerDurable).(bool); known && !durable {
		t.Delivery.DeliveryMode = amqp.Transient
	}
	t.Delivery.Priority, _ = t.header.at(headerPriority).(uint8)
	t.Delivery.Exchange, _ = t.annotations.get("x-exchange").(string)
	t.Delivery.RoutingKey, _ = t.annotations.get("x-routing-key").(string)
}

// translateAnnotations makes headers of the broker's annotations, and of annotations that look like them.
func (t *translation) translateAnnotations() {
	for _, a := range t.annotations {
		if isAnnotation(a.key) && len(text(a.key)) <= maxShortString { // the broker leaves other annotations out
			t.translateAnnotation(text(a.key), a.value)
		}
	}
}

// checkFooter checks the footer, which AMQP 0-9-1 does not have but the broker still reads.
func (t *translation) checkFooter() {
	for _, f := range t.footer {
		if !isAnnotation(f.key) {
			t.change("footer", text(f.key), "a key that does not begin with x-, left out")
		}
		if _, ok := f.value.(described); ok {
			t.change("footer", text(f.key), "a described value, left out")
		}
	}
}

func (t *translation) translateAnnotation(key string, value any) {
	switch key {
	case "x-exchange", "x-routing-key", "x-death": // addresses, and the broker's own annotation
	case "x-cc":
		t.value("annotation", key, value, 0) // an address, too, but RabbitMQ 4.0 translates it
	case "x-basic-type":
		t.Delivery.Type = t.short("annotation", key, value)
	case "x-basic-expiration":
		t.short("annotation", key, value)
	case "x-basic-delivery-mode", "x-basic-priority":
		switch value.(type) {
		case nil, int8, uint8, int16, uint16, int32, uint32, int64, uint64, char, time.Time: // a number to the broker
		default:
			t.change("annotation", key, "not a whole number, left out")
		}
	case "x-opt-deaths":
		t.translateDeaths(value)
	default:
		if _, ok := value.(time.Time); !ok || key != "x-opt-rabbitmq-received-time" {
			t.set("annotation", key, value)
		}
	}
}

// shared translates the properties that no broker fails on.
func (t *translation) shared() {
	p, d := t.properties, &t.Delivery
	d.AppId = fitting(p.at(groupID))
	if user, ok := p.at(userID).([]byte); ok {
		d.UserId = fitting(string(user))
	}
	if at, ok := p.at(creationTime).(time.Time); ok {
		d.Timestamp = seconds(at)
	}
}

func (t *translation) translateProperties() {
	p, d := t.properties, &t.Delivery
	d.MessageId = t.id("message-id", p.at(messageID))
	d.CorrelationId = t.id("correlation-id", p.at(correlationID))
	d.ContentType = t.short("property", "content-type", p.at(contentType))
	d.ContentEncoding = t.short("property", "content-encoding", p.at(contentEncoding))
	d.ReplyTo = fitting(p.at(replyTo))
	switch at := p.at(creationTime).(type) {
	case bool, array, decimal, described:
		t.change("property", "creation-time", "not a time, left out")
	case float32, float64:
		if isOdd(at) {
			t.change("property", "creation-time", "not a time, left out")
		}
	}
}

// id translates a message-id or correlation-id. If the id does not fit, it becomes a header.
func (t *translation) id(name string, value any) string {
	header := "x-" + name
	switch id := value.(type) {
	case nil:
	case []byte:
		t.Delivery.Headers[header] = id
	case uuid:
		return "urn:uuid:" + id.String()
	case uint64:
		return text(id)
	case string:
		if len(id) <= maxShortString {
			return id
		}
		t.Delivery.Headers[header] = id
	default:
		t.change("property", name, "not text, a UUID, a ulong or binary, left out")
	}
	return ""
}

// short translates a property that must fit a short string.
func (t *translation) short(kind, key string, value any) string {
	switch v := value.(type) { // the broker takes both for text
	case []byte:
		value = string(v)
	case uuid:
		value = v.String()
	}
	if value != nil && !isText(value) {
		t.change(kind, key, "not text, left out")
		return ""
	}
	return t.limited(kind, key, text(value))
}

// limited returns a text that fits a short string, and leaves others out.
func (t *translation) limited(kind, key, s string) string {
	if len(s) > maxShortString {
		t.change(kind, key, "%d bytes, left out: %.1024q", len(s), s)
		return ""
	}
	return s
}

// fitting returns a text that AMQP 0-9-1 can carry as a property. The broker leaves others out.
func fitting(value any) string {
	s, ok := value.(string)
	if !ok || len(s) > maxShortString {
		return ""
	}
	return s
}

// DecodePlugin is [Decode] for a message that the plugin rabbitmq_amqp1_0 of RabbitMQ 3 has delivered. The plugin
// leaves a message unchanged, and gives AMQP 0-9-1 a second version of some properties. Each must be text or bytes: the
// broker fails on other types and on long values. The plugin does not pass on headers that AMQP 0-9-1 itself has added,
// such as x-death.
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
		t.change("property", "creation-time", "not a time, left out")
	}
}

// pluginText translates a property that the plugin turns into a short string.
func (t *translation) pluginText(name string, value any) string {
	s := text(value)
	switch v := value.(type) {
	case nil, string, symbol:
	case []byte:
		s = string(v)
	case uuid:
		return "urn:uuid:" + v.String()
	default:
		how := "not text, written as text"
		if s == "" {
			how = "not text, left out"
		}
		t.change("property", name, "%s", how)
	}
	return t.limited("property", name, s)
}
