package audit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// What a queue rejects comes back to it at once, as often as it likes.
func TestLoop(t *testing.T) {
	t.Parallel()
	s := createVhost(t, classic("work", args{"x-dead-letter-exchange": "back"}), classic("other", nil), exchange("back", "fanout", nil), bind("back", "work", ""))
	expectRules(t, s.audit(), "dead-letter-loop")
	published(1)(s)
	for range 50 {
		s.reject("work")
	}
	s.settles("work", func() int { return s.count("work") }, 1)

	fixed := createVhost(t, classic("work", args{"x-dead-letter-exchange": "back"}), classic("other", nil), exchange("back", "fanout", nil), bind("back", "other", ""))
	expectRules(t, fixed.audit())
	rejected(1)(fixed)
	fixed.settles("work", func() int { return fixed.count("work") }, 0)
}

// A full target keeps the dead letters for others from arriving, too.
func TestFullTargetFreezes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit args
		rules []string
		// healthy is what arrives in the queue that has room.
		healthy int
	}{
		"limited":   {args{"x-max-length": number(1), "x-overflow": "reject-publish"}, []string{"full-target-freezes"}, 0},
		"unlimited": {nil, nil, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, exchange("shop", "direct", nil), exchange("dead", "direct", nil),
				quorum("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}),
				classic("full", c.limit), classic("healthy", nil),
				bind("shop", "work", "full"), bind("shop", "work", "ok"), bind("dead", "full", "full"), bind("dead", "healthy", "ok"))
			expectRules(t, s.audit(), c.rules...)
			s.Publish(t, "", "full", persistent())
			// More than the 32 dead letters that a queue has on the way at a time.
			for range 40 {
				rejectedFrom("shop", "full")(s)
			}
			for range 5 {
				rejectedFrom("shop", "ok")(s)
			}
			s.settles("healthy", func() int { return s.count("healthy") }, c.healthy)
		})
	}
}

// What dead-letters at least once to nowhere is neither in the queue nor elsewhere, but pending.
func TestPendingDeadLetters(t *testing.T) {
	t.Parallel()
	s := createVhost(t, quorum("work", args{"x-dead-letter-exchange": "missing", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}))
	expectRules(t, s.audit(), "dead-letter-exchange-missing")
	rejected(1)(s)
	s.settles("work", s.total, 0)
	brokertest.Eventually(t, func() error {
		var queue struct {
			Pending int `json:"messages_dlx"`
		}
		_, response := s.Request(t, http.MethodGet, s.Path("queues", "work"), nil)
		if err := json.Unmarshal(response, &queue); err != nil || queue.Pending != 1 {
			return fmt.Errorf("%d pending, %w", queue.Pending, err)
		}
		return nil
	})
}
