//go:build ignore

package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const exchange, queue = "events", "reminders"

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	channel := must(must(amqp.Dial(os.Getenv("RABBITMQ_URI"))).Channel())
	check(channel.ExchangeDeclarePassive(exchange, "fanout", true, false, false, false, nil))
	must(channel.QueueDeclare(queue, true, false, false, false, nil))
	check(channel.QueueBind(queue, "reminder.#", exchange+".deliver", false, nil))

	began := time.Now()
	for _, seconds := range []int{3, 1, 2} {
		check(channel.PublishWithContext(context.Background(), exchange, "reminder.mail", false, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent,
			Headers:      amqp.Table{"x-delay": seconds * 1000},
			Body:         []byte(strconv.Itoa(seconds)),
		}))
	}
	for d := range must(channel.Consume(queue, "", false, false, false, false, nil)) {
		fmt.Printf("%s after %d ms, x-delay %v\n", d.Body, time.Since(began).Milliseconds(), d.Headers["x-delay"])
		check(d.Ack(false))
	}
}
