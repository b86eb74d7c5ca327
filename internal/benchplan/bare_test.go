//go:build bench

package benchplan

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// atOnce is how many bare calls are in flight, as many as Terraform has operations.
const atOnce = 10

// call is one write.
type call struct {
	method, path string
	body         any
}

// send sends the calls of ten groups side by side, those of a group one after another, and returns how long all of them took: nothing
// but the writes, on connections that are kept alive.
func send(t testing.TB, b *brokertest.Broker, groups [][]call) time.Duration {
	t.Helper()
	began := time.Now()
	var senders errgroup.Group
	senders.SetLimit(atOnce)
	for _, group := range groups {
		senders.Go(func() error {
			var failed []error
			for _, c := range group {
				failed = append(failed, c.send(b))
			}
			return errors.Join(failed...)
		})
	}
	require.NoError(t, senders.Wait())
	return time.Since(began)
}

func (c call) send(b *brokertest.Broker) error {
	status, answer, err := b.Try(c.method, c.path, c.body)
	gone := c.method == http.MethodDelete && status == http.StatusNotFound
	if err == nil && status >= http.StatusMultipleChoices && !gone {
		err = fmt.Errorf("%s %s: %d %s", c.method, c.path, status, answer)
	}
	return err
}

// creation is the calls that make a topology, in an order in which they succeed.
func creation(vhost string, t topology.Topology) []call {
	var calls []call
	for _, name := range slices.Sorted(maps.Keys(t.Exchanges)) {
		e := t.Exchanges[name]
		body := map[string]any{"type": e.Type, "durable": true, "arguments": set(e.Arguments)}
		calls = append(calls, call{http.MethodPut, api("exchanges", vhost, name), body})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Queues)) {
		calls = append(calls, queueCall(vhost, name, t.Queues[name]))
	}
	for _, b := range t.Bindings {
		body := map[string]any{"routing_key": b.RoutingKey, "arguments": set(b.Arguments)}
		calls = append(calls, call{http.MethodPost, api("bindings", vhost, "e", b.Source, "q", b.Destination), body})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Policies)) {
		policy := t.Policies[name]
		calls = append(calls, call{http.MethodPut, api("policies", vhost, name), map[string]any{
			"pattern": policy.Pattern, "apply-to": policy.ApplyTo, "priority": policy.Priority, "definition": policy.Definition,
		}})
	}
	return calls
}

func queueCall(vhost, name string, q topology.Queue) call {
	arguments := topology.Arguments{"x-queue-type": q.Type}
	maps.Copy(arguments, q.Arguments)
	return call{http.MethodPut, api("queues", vhost, name), map[string]any{"durable": true, "arguments": arguments}}
}

// set is never null: the API takes no arguments for an empty object only.
func set(arguments topology.Arguments) topology.Arguments {
	if arguments == nil {
		return topology.Arguments{}
	}
	return arguments
}

func api(parts ...string) string {
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return "/api/" + strings.Join(parts, "/")
}
