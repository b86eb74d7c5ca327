//go:build chaos

package chaos

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// workQueues are the application's own.
var workQueues = []string{"created", "paid", "shipped"}

// application is who publishes and consumes, and calls the management API.
type application struct {
	*brokertest.Broker
	ledger *ledger
	nodes  []*node

	producers, consumers, management *proxy
}

func newApplication(t *testing.T) *application {
	t.Helper()
	a := &application{ledger: newLedger(), nodes: cluster(t)}
	var amqp, management []string
	for _, n := range a.nodes {
		amqp, management = append(amqp, n.amqp), append(management, n.management)
	}
	a.producers, a.consumers = newProxy(t, "producers", amqp...), newProxy(t, "consumers", amqp...)
	a.management = newProxy(t, "management", management...)
	a.Broker = brokertest.New(t)
	a.Endpoint = "http://" + a.management.address
	for _, queue := range workQueues {
		a.Request(t, http.MethodPut, a.Path("queues", queue), map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "quorum"}})
	}
	return a
}

// uri is the way to the cluster through a proxy, without a vhost.
func (a *application) uri(p *proxy) string {
	return strings.Replace(a.URI, a.nodes[0].amqp, p.address, 1)
}
