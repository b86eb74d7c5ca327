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
	for _, own := range ownQueues(queue) {
		is, err := transfer.HasExchange(ctx, conn, own.beside)
		if is {
			return fmt.Errorf("%q is %s: %s", queue, own.what, own.instead)
		}
		if err != nil && !errors.Is(err, transfer.ErrMayNotRead) {
			return err
		}
	}
	return nil
}

// ownQueue is what a queue is if the exchange beside it exists, and what to do instead of a look at it.
type ownQueue struct{ what, beside, instead string }

// ownQueues are what a queue with this name can be.
func ownQueues(queue string) (all []ownQueue) {
	const taken = "the sidecar takes its messages; rabbitmq-retry status counts them"
	if name, end, found := cutLast(queue, ".delay."); found {
		n := delayed.Names(name)
		of := fmt.Sprintf(" of the delayed exchange %q", name)
		l, isLevel := n.LevelOf(queue)
		switch {
		case isLevel:
			all = append(all, ownQueue{"a level" + of, n.Level(l), "write rabbitmq-retry delayed list " + name})
		case queue == n.Refused():
			all = append(all, ownQueue{"the refused queue" + of, n.Refused(), again})
		case end == "inbox":
			all = append(all, ownQueue{"the inbox" + of, n.UnroutedExchange(), taken})
		}
	}
	if name, _, found := cutLast(queue, ".retry."); found {
		n := pipeline.Names(name)
		of := fmt.Sprintf(" of the pipeline %q", name)
		if wait, is := n.DelayOf(queue); is {
			instead := fmt.Sprintf("each message goes back to its work queue after %s", pipeline.FormatDelay(wait))
			all = append(all, ownQueue{"a retry queue" + of, n.FailedRouteExchange(), instead})
		} else if queue == n.RefusedQueue() {
			all = append(all, ownQueue{"the refused queue" + of, n.FailedRouteExchange(), again})
		}
	}
	if name, found := strings.CutSuffix(queue, pipeline.Names("").Inbox()); found {
		n := pipeline.Names(name)
		all = append(all, ownQueue{fmt.Sprintf("the inbox of the pipeline %q", name), n.FailedRouteExchange(), taken})
	}
	return all
}

var again = fmt.Sprintf("the broker offers each message to the queue that refused it every %s", pipeline.RefusedWait)

// cutLast cuts a text around the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
