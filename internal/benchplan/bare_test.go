//go:build bench

package benchplan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

// bare sends nothing but the writes that make objects, on connections that are kept alive.
type bare struct {
	endpoint, username, password string
	client                       *http.Client
	// missing allows what is deleted not to exist.
	missing bool
}

func newBare(t testing.TB, b *brokertest.Broker, endpoint string) *bare {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: atOnce}
	t.Cleanup(transport.CloseIdleConnections)
	return &bare{endpoint: endpoint, username: b.Username, password: b.Password, client: &http.Client{Transport: transport}}
}

// send sends the calls of ten groups side by side, those of a group one after another, and returns how
// long all of them took.
func (b *bare) send(t testing.TB, groups [][]call) time.Duration {
	t.Helper()
	began, queue := time.Now(), make(chan []call)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for group := range queue {
				for _, c := range group {
					if err := b.one(t.Context(), c); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for _, group := range groups {
		queue <- group
	}
	close(queue)
	workers.Wait()
	return time.Since(began)
}

func (b *bare) one(ctx context.Context, c call) error {
	body, err := json.Marshal(c.body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, c.method, b.endpoint+c.path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.SetBasicAuth(b.username, b.password)
	request.Header.Set("Content-Type", "application/json")
	response, err := b.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	gone := b.missing && response.StatusCode == http.StatusNotFound
	if err == nil && response.StatusCode >= http.StatusMultipleChoices && !gone {
		err = fmt.Errorf("%s %s: %s: %s", c.method, c.path, response.Status, answer)
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
