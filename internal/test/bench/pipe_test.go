//go:build bench

package bench

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	amqp "github.com/rabbitmq/amqp091-go"
)

// barePipe is what the tables call a [pipe].
const barePipe = "bare pipe"

// pipe is the simplest that loses no message: it publishes each message unchanged, and acknowledges it once its copy is
// confirmed. It does not recover from errors.
type pipe struct {
	URI                  string
	Queue, Exchange, Key string
	Messages, Window     int
}

// Run moves the messages and waits for SIGTERM, so that its memory can be measured.
func (p *pipe) Run() error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	err := p.move()
	if err == nil {
		<-stop
	}
	return err
}

func (p *pipe) move() error {
	in, hangUp, err := open(p.URI)
	if err != nil {
		return err
	}
	defer hangUp()
	out, hangUp, err := open(p.URI)
	if err != nil {
		return err
	}
	defer hangUp()
	if err := errors.Join(in.Qos(p.Window, 0, false), out.Confirm(false)); err != nil {
		return err
	}
	deliveries, err := in.Consume(p.Queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	return p.copy(out, deliveries)
}

// open opens a channel on a connection of its own.
func open(uri string) (ch *amqp.Channel, hangUp func(), err error) {
	conn, err := amqp.Dial(uri)
	if err != nil {
		return nil, nil, err
	}
	ch, err = conn.Channel()
	return ch, func() { _ = conn.Close() }, err
}

var errRefused = errors.New("the broker did not take a message")

func (p *pipe) copy(ch *amqp.Channel, deliveries <-chan amqp.Delivery) error {
	returns := ch.NotifyReturn(make(chan amqp.Return, p.Window))
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, p.Window))
	var outstanding []amqp.Delivery
	for done := 0; done < p.Messages; {
		select {
		case d := <-deliveries:
			outstanding = append(outstanding, d)
			const mandatory, immediate = true, false
			if err := ch.Publish(p.Exchange, p.Key, mandatory, immediate, amqp.Publishing{
				Headers: d.Headers, ContentType: d.ContentType, DeliveryMode: d.DeliveryMode,
				MessageId: d.MessageId, Timestamp: d.Timestamp, Body: d.Body,
			}); err != nil {
				return err
			}
		case c := <-confirms:
			if len(returns) > 0 || !c.Ack {
				return errRefused
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
