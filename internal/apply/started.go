package apply

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
)

// Unstarted lists the queues for which the broker reports no count of consumers within Times.Stale. If the request
// that declares a quorum queue is cut off, the queue can exist without a leader: it takes no message until it is deleted and
// declared again, or its node restarts. Listings and a repeated declaration show no difference, and a count of messages can be
// from a deleted queue of the same name (3.10.8, 4.0.5, 4.3.6).
func (a *Applier) Unstarted(ctx context.Context, vhost string, queues ...string) ([]string, error) {
	var mutex sync.Mutex
	var unstarted []string
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range queues {
		group.Go(func() error {
			reports, err := a.reports(ctx, vhost, name)
			if err == nil && !reports {
				mutex.Lock()
				defer mutex.Unlock()
				unstarted = append(unstarted, name)
			}
			return err
		})
	}
	err := group.Wait()
	slices.Sort(unstarted)
	return unstarted, err
}

// reports waits until the broker reports how many consumers a queue has. A queue that does not exist counts as reported.
func (a *Applier) reports(ctx context.Context, vhost, queue string) (bool, error) {
	for deadline := time.Now().Add(a.times.Stale); ; {
		info, err := a.client.Queue(ctx, vhost, queue)
		switch {
		case broker.IsNotFound(err):
			return true, nil
		case err != nil || info.Consumers != nil:
			return err == nil, err
		case time.Now().After(deadline):
			return false, nil
		}
		if err := pause(ctx, a.times.Poll); err != nil {
			return false, err
		}
	}
}
