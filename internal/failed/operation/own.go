package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// refuseOwn refuses inboxes, retry queues, levels and refused queues, whose messages move by themselves. If the owner's exchange
// exists, the name says which queue it is. If the user cannot see that exchange, the queue counts as somebody else's.
func refuseOwn(ctx context.Context, conn amqpconn.Raw, queue string) error {
	for exchange, owner := range owners(queue) {
		is, err := transfer.HasExchange(ctx, conn, exchange)
		if is {
			return fmt.Errorf("the messages of %q move on by themselves: it belongs to the %s", queue, owner)
		}
		if err != nil && !errors.Is(err, transfer.ErrMayNotRead) {
			return err
		}
	}
	return nil
}

// owners are the owners that a queue with this name can have, by an exchange that then exists, and what to do instead.
func owners(queue string) map[string]string {
	found := map[string]string{}
	if at := strings.LastIndex(queue, ".delay."); at >= 0 {
		n, exchange := delayed.Names(queue[:at]), queue // who can read a level can see its exchange
		if queue == n.Inbox() {
			exchange = n.UnroutedExchange()
		}
		if n.OwnsQueue(queue) && queue != n.UnroutedQueue() {
			found[exchange] = fmt.Sprintf("delayed exchange %q, which rabbitmq-retry delayed list shows", n)
		}
	}
	for _, end := range []string{".inbox", ".retry."} {
		if at := strings.LastIndex(queue, end); at >= 0 {
			if n := pipeline.Names(queue[:at]); n.OwnsQueue(queue) {
				found[n.FailedRouteExchange()] = fmt.Sprintf("pipeline %q, which rabbitmq-retry status shows", n)
			}
		}
	}
	return found
}
