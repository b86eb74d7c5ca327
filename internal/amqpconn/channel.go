package amqpconn

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
)

// OpenChannel opens a channel.
func OpenChannel(ctx context.Context, conn *amqp.Connection) (*amqp.Channel, error) {
	// A late channel is closed together with its connection.
	return Await(ctx, "open a channel", conn.Channel, func(*amqp.Channel) {})
}

// Confirming is a channel in confirm mode. A broker closes it over a publish that it does not accept.
//
// The broker sends a basic.return before the confirm of the same message, and the library's reader hands both on in that order, so
// whoever has a confirm finds the return in its channel already.
type Confirming struct {
	*amqp.Channel
	Returns chan amqp.Return
	Closed  chan *amqp.Error
}

// OpenConfirming opens a channel with room for the returns of this many messages without a confirm: the library drops what it
// cannot hand over within five seconds, and holds a lock meanwhile that publishing takes.
func OpenConfirming(ctx context.Context, conn *amqp.Connection, window int) (Confirming, error) {
	channel, err := OpenChannel(ctx, conn)
	if err != nil {
		return Confirming{}, err
	}
	c := Confirming{channel, channel.NotifyReturn(make(chan amqp.Return, window)), channel.NotifyClose(make(chan *amqp.Error, 1))}
	_, err = Await(ctx, "turn publisher confirms on", func() (any, error) { return nil, channel.Confirm(false) }, func(any) {})
	return c, err
}

// LookFor is an error if the queue or one of the exchanges is missing. The channel is its own: the broker closes it then.
func LookFor(ctx context.Context, conn *amqp.Connection, queue string, exchanges ...string) (amqp.Queue, error) {
	channel, err := OpenChannel(ctx, conn)
	if err != nil {
		return amqp.Queue{}, err
	}
	return Await(ctx, "look for the queue "+queue, func() (amqp.Queue, error) {
		defer func() { _ = channel.Close() }()
		found, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
		for _, exchange := range exchanges {
			if err == nil { // the broker does not compare the type of an exchange that is only looked for
				err = channel.ExchangeDeclarePassive(exchange, amqp.ExchangeDirect, true, false, false, false, nil)
			}
		}
		return found, err
	}, func(amqp.Queue) {})
}
