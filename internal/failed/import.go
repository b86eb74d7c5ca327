package failed

import (
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// Import says how messages get into a queue for failed messages.
type Import struct {
	// Exchange routes any routing key to the queue and to no other queue; "" if there is no such exchange.
	Exchange string
	// Queue is the queue's name.
	Queue string
	// User is the user who publishes.
	User string
	// Run is the import's id, "" for a message that replaces another message.
	Run string
	// FrameMax is the connection's limit in bytes, 0 for none.
	FrameMax int
}

// Publishing builds the message to publish. It lists the changes without which the queue or the broker would not accept it,
// and the message's pipeline if that has another failed queue.
// Apart from these and the headers that keep the id, all bytes stay the same.
func (i Import) Publishing(m Message, id string) (p Publishing, changes []string, err error) {
	p = Publishing{RoutingKey: i.Queue, Body: m.Body}
	if i.Exchange != "" {
		p.Exchange, p.RoutingKey = i.Exchange, m.RoutingKey
	}
	properties, err := content.Parse(m.Properties)
	if err != nil {
		return p, nil, err
	}
	note := func(done bool, change string) {
		if done {
			changes = append(changes, change)
		}
	}
	aside := AsideIn(i.Queue)
	from, _ := properties.Headers().Get(deadletter.HeaderPipeline)
	other, _ := from.Text()
	note(other != "" && PipelineOf(i.Queue) != "" && string(PipelineOf(i.Queue)) != other, fmt.Sprintf("from pipeline %q", other))
	note(properties.Has(content.Expiration), "expiration dropped, since the message would expire in the queue")
	properties.Remove(content.Expiration)
	note(move(&properties, content.UserID, aside.UserID, properties.Text(content.UserID) != i.User),
		"user-id moved to the header "+aside.UserID+", since brokers refuse another user's name")
	note(moveReplyTo(&properties, aside.ReplyTo), "reply-to "+deadletter.DirectReplyTo+
		" moved to the header "+aside.ReplyTo+", since only clients that await a reply can use it")
	note(dropHeaders(&properties, deadletter.IsCount), "the broker's count of deliveries dropped")
	if properties.Has(content.DeliveryMode) && properties.Number(content.DeliveryMode) == 0 {
		note(properties.SetNumber(content.DeliveryMode, 1),
			"delivery-mode 0 changed to 1, since brokers close the connection over 0")
	}
	note(i.Exchange == "" && dropHeaders(&properties, deadletter.IsAddress),
		"header CC dropped, since copies would go to other queues")
	bare := properties.Encode()
	headers := properties.Headers().Keep(func(name []byte) bool { return !isImports(string(name)) }).With(HeaderID, content.Text(id))
	if i.Run != "" {
		headers = headers.With(HeaderRun, content.Text(i.Run))
	}
	properties.SetHeaders(headers)
	p.Properties = properties.Encode()
	if fits(p.Properties, i.FrameMax) != nil {
		p.Properties = bare
		changes = append(changes, "gets another id, since the header for the old id does not fit a frame of the connection")
	}
	return p, changes, fits(p.Properties, i.FrameMax)
}

// Content is the message as an import leaves it, without the headers that it adds, and with the decoded body. It tells
// whether two messages have the same content, no matter how they got into the queue.
func (i Import) Content(m Message) Message {
	i.FrameMax = 0
	p, _, err := i.Publishing(m, "")
	if err != nil {
		return m
	}
	properties, _ := content.Parse(p.Properties) // were encoded just now
	dropHeaders(&properties, isImports)
	body, _ := m.Plain()
	return Message{Queue: i.Queue, Exchange: p.Exchange, RoutingKey: p.RoutingKey, Properties: canonical(properties), Body: body}
}

// Publishable returns an error if a broker would close the channel over these properties, for example after an edit of the
// file. It accepts properties that an import corrects.
func Publishable(encoded []byte) error {
	properties, err := content.Parse(encoded)
	if err != nil {
		return err
	}
	if mode := properties.Number(content.DeliveryMode); mode > persistent {
		return fmt.Errorf("properties/delivery_mode: is %d, but must be 1 or 2", mode)
	}
	for _, name := range []string{"CC", "BCC"} {
		value, found := properties.Headers().Get(name)
		if found && !isListOfTexts(value) {
			return fmt.Errorf("properties/headers/%s: must be a list of texts", name)
		}
	}
	return nil
}

func isListOfTexts(v content.Value) bool {
	list, ok := v.Array()
	isOther := func(element content.Value) bool { return element.Type != content.TypeText }
	return ok && !slices.ContainsFunc(slices.Collect(list.All()), isOther)
}

// moveReplyTo moves a reply-to into a header if the broker would close the channel over it.
func moveReplyTo(p *content.Properties, header string) bool {
	return move(p, content.ReplyTo, header, p.Text(content.ReplyTo) == deadletter.DirectReplyTo)
}

// move replaces a property that the broker would refuse by a header, if the message has it.
func move(p *content.Properties, property content.Property, header string, refused bool) bool {
	moved := refused && p.Has(property)
	if moved {
		p.SetHeaders(set(p.Headers(), header, content.Text(p.Text(property))))
		p.Remove(property)
	}
	return moved
}

// dropHeaders removes headers, and also the table of headers if it becomes empty.
func dropHeaders(p *content.Properties, drop func(name string) bool) bool {
	before := p.Headers()
	kept := before.Keep(func(name []byte) bool { return !drop(string(name)) })
	if len(kept) == len(before) {
		return false
	}
	if p.Remove(content.Headers); len(kept) > 0 {
		p.SetHeaders(kept)
	}
	return true
}
