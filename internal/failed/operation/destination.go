package operation

import (
	"context"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Destination is a queue that a replay sends messages to.
type Destination struct {
	Queue string
	// Meant is how many messages the replay sends to it.
	Meant int
	// Count is the queue's count before the replay. Unknown is why it is not known.
	transfer.Count
	Unknown error
	// Settings are the queue's merged arguments and policies, nil if they are not known.
	Settings topology.Arguments
}

// Excess is how many messages do not fit the queue's max-length, as far as is known. Consumers can make room.
func (d Destination) Excess() int {
	limit, limited := d.Settings["max-length"].(int64)
	if !limited || d.Unknown != nil || d.Consumers > 0 {
		return 0
	}
	return max(0, min(d.Meant, d.Ready+d.Meant-int(limit)))
}

// Survey looks at the queues that the chosen messages go to.
func (r *Replay) Survey(ctx context.Context) error {
	if r.how.To == "" && r.Delayed != "" {
		return nil // they go to exchanges
	}
	conn, err := r.queue().Open(ctx, "count")
	if err != nil {
		return err
	}
	defer amqpconn.HangUp(conn.Connection)
	r.Destinations = nil
	for _, queue := range slices.Sorted(maps.Keys(r.Meant)) {
		if err := refuseOwn(ctx, conn, queue); err != nil {
			return err
		}
		d := Destination{Queue: queue, Meant: r.Meant[queue]}
		if r.Limits != nil {
			d.Settings = r.Limits.Queue(queue).Values()
		}
		d.Count, d.Unknown = transfer.Queue{Name: queue}.CountOver(ctx, conn)
		r.Destinations = append(r.Destinations, d)
	}
	return nil
}

// lacking is how many of the sent messages the destinations do not have. It is -1 if that is not known, such as of a queue with
// consumers, or of the queue that the replay takes from. Streams always seem empty, and so do quorum queues while their
// leader is busy (3.10.8, 4.0.5, 4.3.6).
func (r *Replay) lacking(ctx context.Context, conn amqpconn.Raw, sent int) int {
	if len(r.Destinations) == 0 {
		return -1
	}
	for _, d := range r.Destinations {
		if d.Unknown != nil || d.Consumers > 0 || d.Queue == r.queue().Name {
			return -1
		}
		now, err := transfer.Queue{Name: d.Queue}.CountOver(ctx, conn)
		if err != nil || now.Consumers > 0 || now.Ready == 0 {
			return -1
		}
		sent -= now.Ready - d.Ready
	}
	return sent
}
