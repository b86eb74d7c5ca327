package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ask asks quorum queues that were proved to be empty themselves, or fails with *KeptError. The proof believes
// statistics, which a broker may gather much less often than by default (quorum_tick_interval). Classic queues
// are asked by their deletion.
func (e *execution) ask(ctx context.Context, queues map[string]topology.Queue) error {
	against, err := e.answers(ctx, queues)
	if err != nil {
		return err
	}
	return keptUnless(nil, against)
}

// answers says of each queue that is not known to be empty why. Any error may be about a message, but for a connection that
// a limit refuses: that is about none, and returned, too.
func (e *execution) answers(ctx context.Context, queues map[string]topology.Queue) (against map[string]string, refused error) {
	against = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		if queues[name].Type != topology.Quorum || e.All.Queues[name].Arguments["x-single-active-consumer"] == true {
			continue // which RabbitMQ lets nobody look into but the consumer
		}
		holds, err := e.client.HoldsMessage(ctx, e.Vhost, name)
		switch {
		case broker.IsNotFound(err):
		case isRefused(err):
			against[name], refused = notAskable(err), fmt.Errorf("queue %q: %s", name, notAskable(err))
		case err != nil:
			against[name] = notAskable(err)
		case holds:
			against[name] = "a message that the broker's statistics do not count yet"
		}
	}
	return against, refused
}

func isRefused(err error) bool {
	var refused *broker.RefusedError
	return errors.As(err, &refused)
}

func notAskable(err error) string {
	if isRefused(err) {
		return fmt.Sprintf("whether it is empty cannot be asked: %v", err)
	}
	return fmt.Sprintf("whether it is empty cannot be asked, which takes the permission to read it: %v", err)
}
