package session_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
)

// What one operation has read serves no later one.
func TestCountsAreReadAgainForTheNextOperation(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	var first, second atomic.Int32
	client, err := broker.New(broker.Config{Username: b.Username, Password: b.Password, Endpoint: b.Before(t, func(r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "messages_dlx") {
			first.Add(1)
		} else if strings.HasSuffix(r.URL.Path, "/work") {
			second.Add(1)
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	s := session.New(client, apply.Times{Lag: time.Millisecond})
	brokertest.Eventually(t, time.Minute, func() error {
		drained, err := s.AllDrained(t.Context(), b.Vhost, "work", "gone")
		if err == nil && !drained {
			err = errors.New("an empty queue is not drained")
		}
		return err
	})
	calls, began := second.Load(), first.Load()
	brokertest.Eventually(t, time.Minute, func() error {
		if _, err := s.Drained(t.Context(), b.Vhost, "work"); err != nil {
			return err
		}
		if first.Load() == began {
			return errors.New("the first reading still serves")
		}
		return nil
	})
	if second.Load() < calls+2 {
		t.Error("no call shared the first reading of another")
	}
}
