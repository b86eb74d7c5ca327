package drift

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// refusalOf is the broker's answer if it refuses the object that a fault would create, in an empty vhost.
func (s Subject) refusalOf(t *testing.T, empty *brokertest.Broker, f fault) string {
	t.Helper()
	const name = "by hand"
	client, ctx, vhost := acctest.Client(t, empty), t.Context(), empty.Vhost
	var answer error
	for _, e := range f.change.remake.Exchanges {
		_, answer = client.PutExchange(ctx, vhost, name, e)
	}
	for _, q := range f.change.remake.Queues {
		_, answer = client.PutQueue(ctx, vhost, name, q)
	}
	for _, p := range f.change.remake.Policies {
		_, answer = client.PutPolicy(ctx, vhost, name, p)
	}
	for _, b := range f.change.remake.Bindings {
		_, err := client.PutExchange(ctx, vhost, name, topology.Exchange{Type: s.Wanted.Exchanges[b.Source].Type})
		require.NoError(t, err)
		b.Source, b.Destination, b.ToExchange = name, name, true
		answer = client.Bind(ctx, vhost, b)
	}
	require.NoError(t, client.DeleteExchange(ctx, vhost, name))
	require.NoError(t, client.DeleteQueue(ctx, vhost, name, ""))
	require.NoError(t, client.DeletePolicy(ctx, vhost, name))
	if refusal := (&broker.Error{}); errors.As(answer, &refusal) && refusal.Status == http.StatusBadRequest {
		return refusal.Reason
	}
	require.NoErrorf(t, answer, "%s: %s", f.object, f.what)
	return ""
}

// cause changes the broker as the fault says.
func (s *vhost) cause(t *testing.T, f fault) {
	t.Helper()
	client, ctx := acctest.Client(t, s.Broker), t.Context()
	acctest.Remake(t, s.Broker, f.change.remake)
	var failed error
	for _, b := range f.change.delete.Bindings {
		failed = errors.Join(failed, client.Unbind(ctx, s.Vhost, b))
	}
	for name := range f.change.delete.Exchanges {
		failed = errors.Join(failed, client.DeleteExchange(ctx, s.Vhost, name))
	}
	for name := range f.change.delete.Queues {
		failed = errors.Join(failed, client.DeleteQueue(ctx, s.Vhost, name, ""))
		delete(s.holds, name)
	}
	for name := range f.change.delete.Policies {
		failed = errors.Join(failed, client.DeletePolicy(ctx, s.Vhost, name))
	}
	require.NoError(t, failed)
	for name := range f.change.remake.Queues {
		delete(s.holds, name)
	}
}

// endsAt reports whether the broker deletes a binding together with an object.
func endsAt(b topology.Binding, kind, name string) bool {
	toExchange := kind == "exchanges"
	return b.Source != "" && (toExchange && b.Source == name || b.ToExchange == toExchange && b.Destination == name)
}
