package undeliverable

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// Replace puts a copy that AMQP 0-9-1 can carry in the place of each message that it cannot, and returns how many there were.
// Of others it looks at so many at most, and leaves them as they are. The copies go to this exchange, with "" to the queue by
// its name; an original is accepted only after the broker has confirmed its copy.
func (q Queue) Replace(ctx context.Context, looks int, exchange string) (replaced int, err error) {
	out := outlet{uri: q.URI, vhost: q.Vhost, client: q.Client}
	defer out.close()
	const batch = 200
	return q.take(ctx, looks, batch, func(ctx context.Context, d *amqp.Delivery, why string) error {
		if err := out.open(ctx); err != nil {
			return err
		}
		route := deadletter.Route{Exchange: exchange, Key: d.RoutingKey}
		if exchange == "" {
			route.Key = q.Name
		}
		m, whole := deadletter.Copy(d, why, out.conn.Config.FrameSize)
		if !whole {
			m, _ = deadletter.Copy(d, withoutHeaders+why, out.conn.Config.FrameSize)
		}
		return out.publish(ctx, route, m)
	})
}
