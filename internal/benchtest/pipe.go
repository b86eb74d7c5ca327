//go:build bench

package benchtest

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Variable names the environment variable with the pipe, as JSON, that a process must run.
const Variable = "BARE_PIPE"

// Pipe does the least that loses nothing: it publishes what it consumes, as it is, and acknowledges what is confirmed. It
// survives nothing.
type Pipe struct {
	URI                  string
	Queue, Exchange, Key string
	Messages, Window     int
}

// FromEnvironment returns the pipe that this process must run, or nil.
func FromEnvironment() (*Pipe, error) {
	settings := os.Getenv(Variable)
	if settings == "" {
		return nil, nil //nolint:nilnil // nothing is wrong
	}
	p := &Pipe{}
	return p, json.Unmarshal([]byte(settings), p)
}

// Setting returns the environment of a process that must run the pipe.
func (p *Pipe) Setting() string {
	text, _ := json.Marshal(p) // strings and numbers
	return Variable + "=" + string(text)
}

// Run moves the messages and waits for SIGTERM, so that its memory can be measured.
func (p *Pipe) Run() error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	in, deliveries, err := p.consume()
	if err != nil {
		return err
	}
	out, err := amqp.Dial(p.URI)
	if err != nil {
		return err
	}
	if err = p.move(out, deliveries); err == nil {
		<-stop
	}
	return errors.Join(err, in.Close(), out.Close())
}

func (p *Pipe) consume() (*amqp.Connection, <-chan amqp.Delivery, error) {
	conn, err := amqp.Dial(p.URI)
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, nil, err
	}
	if err := ch.Qos(p.Window, 0, false); err != nil {
		return nil, nil, err
	}
	deliveries, err := ch.Consume(p.Queue, "", false, false, false, false, nil)
	return conn, deliveries, err
}

func (p *Pipe) move(conn *amqp.Connection, deliveries <-chan amqp.Delivery) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, p.Window))
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, p.Window))
	var outstanding []amqp.Delivery
	for done := 0; done < p.Messages; {
		select {
		case d := <-deliveries:
			outstanding = append(outstanding, d)
			if err := p.republish(ch, d); err != nil {
				return err
			}
		case c := <-confirms:
			if len(returns) > 0 || !c.Ack {
				return errors.New("the broker did not take a message")
			}
			if err := outstanding[0].Ack(false); err != nil {
				return err
			}
			outstanding = outstanding[1:]
			done++
		}
	}
	return nil
}

func (p *Pipe) republish(ch *amqp.Channel, d amqp.Delivery) error {
	const mandatory, immediate = true, false
	return ch.Publish(p.Exchange, p.Key, mandatory, immediate, amqp.Publishing{
		Headers: d.Headers, ContentType: d.ContentType, DeliveryMode: d.DeliveryMode,
		MessageId: d.MessageId, Timestamp: d.Timestamp, Body: d.Body,
	})
}
