package broker

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// An error names the rights that are missing, and no others. The questions that find them out leave nothing behind.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	const configure, further = `needs the permission configure on "new", and read on "new" and write on `, `needs the permission read on "new" and write on `
	for _, c := range []struct{ configure, write, read, want string }{
		{"^$", ".*", ".*", configure},
		{"^$", "^$", "^$", configure},
		{".*", "^$", ".*", further},
		{".*", ".*", "^$", further},
		{".*", "^unrouted$", "^new$", ""},
	} {
		user, password := b.User(t, "management", c.configure, c.write, c.read)
		client, err := New(Config{Endpoint: b.Endpoint, Username: user, Password: password})
		require.NoError(t, err)
		_, queue := client.PutQueue(t.Context(), b.Vhost, "new", topology.Queue{
			Type: topology.Quorum, Arguments: topology.Arguments{"x-dead-letter-exchange": "unrouted"},
		})
		_, exchange := client.PutExchange(t.Context(), b.Vhost, "new", topology.Exchange{
			Type: "fanout", Arguments: topology.Arguments{"alternate-exchange": "unrouted"},
		})
		if c.want == "" {
			require.NoError(t, queue)
			require.NoError(t, exchange)
			continue
		}
		require.ErrorContains(t, queue, c.want+`"unrouted"`, "%v", c)
		require.ErrorContains(t, exchange, c.want+`"unrouted"`, "%v", c)
		all, err := newClient(t, b, b.Endpoint).List(t.Context(), b.Vhost)
		require.NoError(t, err)
		require.NotContains(t, all.Queues, "new")
		require.NotContains(t, all.Exchanges, "new")
	}
}

// Each tag has its own answer.
func TestMissingTags(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	user, password := b.User(t, "management", ".*", ".*", ".*")
	c, err := New(Config{Endpoint: b.Endpoint, Username: user, Password: password})
	require.NoError(t, err)
	policy := topology.Policy{Pattern: "x", ApplyTo: "queues", Definition: topology.Arguments{"max-length": int64(1)}}
	_, err = c.PutPolicy(t.Context(), b.Vhost, "p", policy)
	require.ErrorContains(t, err, "needs the tag policymaker")
	_, err = c.PutOperatorPolicy(t.Context(), b.Vhost, "p", policy)
	require.ErrorContains(t, err, "needs the tag administrator")
	_, err = c.Accounts(t.Context())
	require.ErrorContains(t, err, "needs the tag administrator")
	require.ErrorContains(t, c.get(t.Context(), "/api/nodes", new([]any)), "needs the tag monitoring")
}

// A closed connection gets advice about TLS only while nothing has worked yet.
func TestClosedConnection(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodPut {
			panic(http.ErrAbortHandler)
		}
		api.ServeHTTP(w, r)
	}))
	declare := func() error {
		_, err := c.PutQueue(t.Context(), b.Vhost, "q", topology.Queue{Type: topology.Quorum})
		return err
	}
	require.ErrorContains(t, declare(), "if this port uses TLS")
	_, err := c.List(t.Context(), b.Vhost)
	require.NoError(t, err)
	err = declare()
	require.ErrorContains(t, err, "a proxy in between closes connections")
	require.NotContains(t, err.Error(), "TLS")
}
