// Command demo is the application that scripts/demo shows. It has no code for retries.
//
// `demo orders` publishes orders, and consumes each until it is processed or parked. Then `scripts/demo replay` replays one.
// `demo reminders` publishes to a delayed exchange, and consumes what is due. Both exit with 1 if a message is wrong.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func main() {
	log.SetFlags(0)
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("shop")
	config := amqp.Config{Vhost: os.Getenv("DEMO_VHOST"), Properties: properties}
	conn, err := amqp.DialConfig(os.Getenv("RABBITMQ_URI"), config)
	if err != nil {
		log.Fatalf("connect to RABBITMQ_URI: %s", err)
	}
	channel := must(conn.Channel())
	check(channel.Confirm(false))
	check(channel.Qos(1, 0, false))
	switch os.Args[1] {
	case "orders":
		showRetries(channel, must(conn.Channel()))
	case "reminders":
		showReminders(channel)
	}
	check(conn.Close())
}

// check ends the demo with an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

// consume returns the messages of a queue, whose name is also the consumer's.
func consume(channel *amqp.Channel, queue string) <-chan amqp.Delivery {
	return must(channel.Consume(queue, queue, false, false, false, false, nil))
}

// publish publishes a message, and waits until the broker has confirmed it.
func publish(channel *amqp.Channel, exchange, key string, message amqp.Publishing) {
	message.DeliveryMode = amqp.Persistent
	if !must(channel.PublishWithDeferredConfirm(exchange, key, true, false, message)).Wait() {
		log.Fatalf("the broker did not confirm %s", message.MessageId)
	}
}

// next waits for a message of either consumer. The second one can be nil.
func next(one, other <-chan amqp.Delivery) (m amqp.Delivery, err error) {
	var open bool
	select {
	case m, open = <-one:
	case m, open = <-other:
	}
	if !open {
		err = errors.New("the broker closed the consumer's channel")
	}
	return m, err
}

// began is when the time line began.
var began time.Time

const (
	red   = "31"
	green = "32"
)

// event prints a line of the time line, with colour unless scripts/demo has set NO_COLOR.
func event(colour, message, attempt, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	line := fmt.Sprintf("  %6.2fs  %-10s  %-14s  %s", time.Since(began).Seconds(), message, attempt, what)
	if _, noColour := os.LookupEnv("NO_COLOR"); colour != "" && !noColour {
		line = "\x1b[" + colour + "m" + line + "\x1b[0m"
	}
	fmt.Println(line)
}
