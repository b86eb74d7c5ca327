package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

const (
	// deliveryLimit is that of a quorum queue which has none of its own, from RabbitMQ 4 on. A message that is put
	// back once more is deleted, or dead-lettered.
	deliveryLimit = 20
	// worryingCount leaves room for a few more looks, by others, too.
	worryingCount = 15
)

// limited reports whether the queue may delete what is looked at too often, and is an error if it is about to.
func (s *survey) limited(ctx context.Context) (bool, error) {
	conn, err := s.place.Open(ctx, "ask for the version")
	if err != nil {
		return false, err
	}
	release, _ := conn.Connection.Properties["version"].(string)
	_ = conn.Close()
	if strings.HasPrefix(release, "3.") {
		return false, nil
	}
	s.console.Say("Each look at a quorum queue of RabbitMQ 4 counts against its delivery limit, %d unless it has another: "+
		"a policy with delivery-limit -1 ends that.", deliveryLimit)
	if s.force {
		return true, nil
	}
	if err := s.mayRescue(ctx); err != nil {
		return false, err
	}
	// One message alone, so that a look which is refused counts for no other.
	var count int64
	decide := func(e *failed.Entry) pass.Verdict {
		count = e.DeliveryCount
		return pass.Verdict{}
	}
	_, err = pass.Run(ctx, s.place.Queue, pass.Job{Scan: 1, Publishes: true, Decide: spare(s.place.Name, decide)})
	if err == nil && count >= worryingCount {
		err = fmt.Errorf("a message of %q was delivered %d times already, and the queue may delete it after %d: "+
			"set delivery-limit to -1 in a policy, or write --force", s.place.Name, count, deliveryLimit)
	}
	return err == nil, err
}

// mayRescue is an error if a message could not be copied before the queue deletes it.
func (s *survey) mayRescue(ctx context.Context) error {
	published, returned := false, false
	_, err := pass.Send(ctx, s.place.Queue, pass.Sending{
		Next: func() (failed.Publishing, bool, error) {
			first := !published
			published = true
			// To a queue that does not exist: the broker checks the permission, and returns it.
			return failed.Publishing{RoutingKey: "rabbitmq-retry-" + rand.Text(), Properties: []byte{0, 0}}, first, nil
		},
		Done: func(_ failed.Publishing, o pass.Outcome) { returned = o == pass.Returned },
	})
	if err == nil && !returned {
		err = errors.New("the broker took a message for a queue that does not exist")
	}
	if err != nil {
		return fmt.Errorf("a look could delete messages of %q, which may have a delivery limit; needs: write on \"amq.default\" "+
			"to save them, or write --force (%w)", s.place.Name, err)
	}
	return nil
}

// spare replaces what the queue would delete by a copy, which begins to count anew.
func spare(queue string, decide func(*failed.Entry) pass.Verdict) func(*failed.Entry) pass.Verdict {
	return func(e *failed.Entry) pass.Verdict {
		verdict := decide(e)
		if verdict.Publish == nil && !verdict.Drop && e.DeliveryCount >= deliveryLimit {
			verdict.Publish = &failed.Publishing{RoutingKey: queue, Properties: failed.Uncounted(e.Properties), Body: e.Body}
		}
		return verdict
	}
}
