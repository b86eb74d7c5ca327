//go:build chaos

package chaos

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	heartbeat = 10 * time.Second
	// reconnectAfter is how soon a client that lost its connection comes back.
	reconnectAfter = 200 * time.Millisecond
)

// always runs a client, each time that it loses its connection again, until the context is done.
func (a *application) always(ctx context.Context, p *proxy, client func(context.Context, *amqp.Connection) error) {
	for ctx.Err() == nil {
		if conn, err := a.connect(p); err == nil {
			// Both only say that the connection is lost.
			_ = client(ctx, conn)
			_ = conn.CloseDeadline(time.Now().Add(reconnectAfter))
		}
		pause(ctx.Done(), reconnectAfter)
	}
}

func (a *application) connect(p *proxy) (*amqp.Connection, error) {
	return amqp.DialConfig(a.uri(p), amqp.Config{Vhost: a.Vhost, Heartbeat: heartbeat, Dial: amqp.DefaultDial(heartbeat)})
}

// pause waits, and reports whether it was not over before.
func pause(over <-chan struct{}, d time.Duration) bool {
	select {
	case <-over:
		return false
	case <-time.After(d):
		return true
	}
}
