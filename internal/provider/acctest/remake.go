package acctest

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Client is a client of the test broker's management API.
func Client(t *testing.T, b *brokertest.Broker) *broker.Client {
	t.Helper()
	client, err := broker.New(broker.Config{Endpoint: b.Endpoint, Username: b.Username, Password: b.Password})
	require.NoError(t, err)
	return client
}

// Remake deletes exchanges and queues, creates them with these attributes, and restores all of their bindings. It overwrites
// policies, and adds bindings.
func Remake(t *testing.T, b *brokertest.Broker, objects topology.Topology) {
	t.Helper()
	client, ctx := Client(t, b), t.Context()
	bound := slices.Clone(objects.Bindings)
	for name, e := range objects.Exchanges {
		from, errFrom := client.BindingsFrom(ctx, b.Vhost, name)
		to, errTo := client.BindingsToExchange(ctx, b.Vhost, name)
		bound = append(append(bound, from...), to...)
		errDelete := client.DeleteExchange(ctx, b.Vhost, name)
		_, errPut := client.PutExchange(ctx, b.Vhost, name, e)
		require.NoError(t, errors.Join(errFrom, errTo, errDelete, errPut))
	}
	for name, q := range objects.Queues {
		to, errTo := client.BindingsTo(ctx, b.Vhost, name)
		bound = append(bound, to...)
		errDelete := client.DeleteQueue(ctx, b.Vhost, name, "")
		_, errPut := client.PutQueue(ctx, b.Vhost, name, q)
		require.NoError(t, errors.Join(errTo, errDelete, errPut))
	}
	for name, p := range objects.Policies {
		_, err := client.PutPolicy(ctx, b.Vhost, name, p)
		require.NoError(t, err)
	}
	for _, binding := range bound {
		if binding.Source != "" { // the broker creates bindings of the default exchange
			require.NoError(t, client.Bind(ctx, b.Vhost, binding))
		}
	}
}
