package configured

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
)

// What an apply does first can start the broker that the rest of it needs.
func TestAnApplyAsksAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"name": "terraform", "tags": ["policymaker"], "rabbitmq_version": "4.3.6"}`))
	}))
	defer server.Close()
	client, err := broker.New(broker.Config{Endpoint: server.URL, Username: "terraform", Password: "secret"})
	require.NoError(t, err)
	s := New(client, apply.DefaultTimes())
	for range 2 {
		if _, err := s.Reach(t.Context()); !broker.IsUnauthorized(err) {
			t.Fatalf("a plan: %v", err)
		}
	}
	for range 2 {
		if user, err := s.ReachForWrite(t.Context()); err != nil || user.Name != "terraform" {
			t.Errorf("an apply: %v, %v", user, err)
		}
	}
	if asked != 3 {
		t.Errorf("the broker was asked %d times", asked)
	}
}
