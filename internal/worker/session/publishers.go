package session

import (
	"context"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// publishers are one per exchange, each with a channel of its own, so that an exchange that is missing,
// or whose target has no majority, does not silence the others. The direct one is for the default
// exchange, which leads straight to a work queue.
type publishers struct {
	retryPublisher, returnPublisher, failedRoutePublisher, failedPublisher, directPublisher *publisher
}

func openPublishers(
	ctx context.Context, conn *amqp.Connection, names pipeline.Names, window int, watch *metrics.Pipeline,
) (all publishers, err error) {
	for exchange, p := range map[string]**publisher{
		names.RetryExchange():       &all.retryPublisher,
		names.ReturnExchange():      &all.returnPublisher,
		names.FailedRouteExchange(): &all.failedRoutePublisher,
		names.FailedExchange():      &all.failedPublisher,
		"":                          &all.directPublisher,
	} {
		if *p, err = openPublisher(ctx, conn, exchange, window); err != nil {
			return all, err
		}
		(*p).watch = watch.Exchange(exchange)
	}
	return all, nil
}

func (ps publishers) all() [5]*publisher {
	return [...]*publisher{ps.retryPublisher, ps.returnPublisher, ps.failedRoutePublisher, ps.failedPublisher, ps.directPublisher}
}

// to is the publisher of an exchange that a verdict leads to.
func (ps publishers) to(exchange string) *publisher {
	for _, p := range ps.all() {
		if p.exchange == exchange {
			return p
		}
	}
	return nil
}

// outstanding is how many messages have no confirm yet.
func (ps publishers) outstanding() (n int) {
	for _, p := range ps.all() {
		n += len(p.outstanding)
	}
	return n
}

// publishIDs are unique: the prefix is the session's.
type publishIDs struct {
	prefix string
	count  uint64
}

func (ids *publishIDs) next() string {
	ids.count++
	return ids.prefix + strconv.FormatUint(ids.count, 36)
}
