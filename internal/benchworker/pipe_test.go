//go:build bench

package benchworker

import (
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// What makes this program play another part.
const (
	pipeVariable    = "BENCHWORKER_PIPE"
	profileVariable = "BENCHWORKER_PROFILE"
)

func TestMain(m *testing.M) {
	if run := otherPart(); run != nil {
		if err := run(); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}

func otherPart() func() error {
	for variable, part := range map[string]interface{ run() error }{pipeVariable: &pipe{}, profileVariable: &profiled{}} {
		if settings := os.Getenv(variable); settings != "" {
			return func() error { return errors.Join(json.Unmarshal([]byte(settings), part), part.run()) }
		}
	}
	return nil
}

// pipe does the least that loses nothing: it publishes what it consumes, as it is, and acknowledges
// what is confirmed. It survives nothing.
type pipe struct {
	URI              string
	Messages, Window int
}

func (p *pipe) run() error {
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
	err = p.move(out, deliveries, stop)
	return errors.Join(err, in.Close(), out.Close())
}

func (p *pipe) consume() (*amqp.Connection, <-chan amqp.Delivery, error) {
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
	deliveries, err := ch.Consume(names.Inbox(), "", false, false, false, false, nil)
	return conn, deliveries, err
}

func (p *pipe) move(conn *amqp.Connection, deliveries <-chan amqp.Delivery, stop <-chan os.Signal) error {
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
			if err := republish(ch, d); err != nil {
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
	<-stop // for its memory to be looked at
	return nil
}

func republish(ch *amqp.Channel, d amqp.Delivery) error {
	const mandatory, immediate = true, false
	return ch.Publish(names.RetryExchange(), pipeline.DelayKey(delay), mandatory, immediate, amqp.Publishing{
		Headers: d.Headers, ContentType: d.ContentType, DeliveryMode: d.DeliveryMode,
		MessageId: d.MessageId, Timestamp: d.Timestamp, Body: d.Body,
	})
}
