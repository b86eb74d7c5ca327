package audit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// A queue that expires is deleted with what is in it.
func TestExpiringQueues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vhost part
		queue string
		rules []string
		gone  bool
	}{
		"parking":        {all(classic("work", toParked(nil)), classic("parked", args{"x-expires": number(1500)})), "parked", []string{"parking-queue-expires"}, true},
		"parking quorum": {all(classic("work", toParked(nil)), quorum("parked", args{"x-expires": number(1500), "x-delivery-limit": number(1_000_000)})), "parked", []string{"parking-queue-expires"}, true},
		"parked":         {all(classic("work", toParked(nil)), parked), "parked", nil, false},
		"retry":          {all(classic("work", toQueue("retry", nil)), classic("retry", toQueue("work", args{"x-message-ttl": number(60_000), "x-expires": number(1500)}))), "retry", []string{"retry-queue-expires"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, c.vhost)
			expectRules(t, s.audit(), c.rules...)
			rejected(1)(s)
			if !c.gone {
				s.settles(c.queue, func() int { return s.count(c.queue) }, 1)
				return
			}
			// Not by AMQP: looking at a queue may count as using it.
			brokertest.Eventually(t, func() error {
				if names := s.names(); slices.Contains(names, c.queue) {
					return fmt.Errorf("queues %q", names)
				}
				return nil
			})
			if n := s.count("work"); n != 0 {
				t.Errorf("%d messages came back", n)
			}
		})
	}
}

func (s *liveVhost) names() []string {
	s.Helper()
	var queues []struct{ Name string }
	_, response := s.Request(s.T, http.MethodGet, s.Path("queues")+"?disable_stats=true", nil)
	if err := json.Unmarshal(response, &queues); err != nil {
		s.Fatal(err)
	}
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names
}
