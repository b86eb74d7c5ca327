package brokertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// client is shared by all tests, and keeps connections for tests that run in parallel.
var client = &http.Client{
	Timeout:   Patience, // if many tests begin at once on a busy machine, the last one waits long for its vhost
	Transport: &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: 2 * time.Second},
}

// Path is the path of an object of this virtual host in the management API, with escaped names: b.Path("queues", "a/b") is
// /api/queues/<vhost>/a%2Fb.
func (b *Broker) Path(kind string, names ...string) string {
	parts := []string{"/api", kind, url.PathEscape(b.Vhost)}
	for _, name := range names {
		parts = append(parts, url.PathEscape(name))
	}
	return strings.Join(parts, "/")
}

// attempts is how often a request without an answer is sent. A node of RabbitMQ 3.10.8 under load answered one DELETE among
// hundreds of thousands with an empty 500.
const attempts = 3

// tooBusy matches the answers of a node that had no time to start a quorum queue; the second one is of 3.10.
var tooBusy = regexp.MustCompile("cluster_not_formed|handle_tick")

// Request calls the management API as the administrator. The path begins with /api, and its names are escaped (see
// [Broker.Path]). A body that is not nil is sent as JSON. Any status is an answer: the test fails only if the broker does not
// answer. If there is no answer, or a status of 500 or above, Request repeats any request except a POST.
func (b *Broker) Request(t testing.TB, method, path string, body any) (status int, response []byte) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		var err error
		status, response, err = b.Try(method, path, body)
		last := method == http.MethodPost || attempt == attempts
		switch {
		case err != nil && last:
			t.Fatalf("%s %s: %v", method, path, err)
		case err != nil: // a busy broker closes a connection that has waited for an answer for a minute
		case attempt > 1 && method == http.MethodDelete && status == http.StatusNotFound:
			return http.StatusNoContent, nil // an earlier attempt did it
		case last, status < http.StatusInternalServerError && !tooBusy.Match(response):
			return status, response
		}
		t.Logf("%s %s: %d %s %v", method, path, status, response, err)
		time.Sleep(firstPause)
	}
}

// Try is one attempt of [Broker.Request]. Unlike Request, it can run in any goroutine.
func (b *Broker) Try(method, path string, body any) (status int, response []byte, err error) {
	var sent []byte
	if body != nil {
		if sent, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	// Not the test's context, since cleanups need the API after its end.
	request, err := http.NewRequestWithContext(context.Background(), method, b.Endpoint+path, bytes.NewReader(sent))
	if err != nil {
		return 0, nil, err
	}
	request.SetBasicAuth(b.Username, b.Password)
	request.Header.Set("Content-Type", "application/json")
	if method != http.MethodPost {
		// The header is not sent, but lets net/http repeat a request if the broker has just closed its connection.
		request.Header["Idempotency-Key"] = nil
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	response, err = io.ReadAll(answer.Body)
	return answer.StatusCode, response, err
}

// create makes the virtual host. A busy broker closes the connection before its answer, but still makes the virtual host. The
// next request then finds a virtual host that exists but does not run yet.
func (b *Broker) create(t testing.TB) {
	t.Helper()
	Eventually(t, func() error {
		status, response, err := b.Try(http.MethodPut, b.Path("vhosts"), struct{}{})
		switch {
		case err != nil:
			return err
		case status == http.StatusCreated:
			return nil
		case status >= 300:
			return fmt.Errorf("%d %s", status, response)
		}
		return b.running()
	})
}

// running is an error unless the virtual host runs on every node.
func (b *Broker) running() error {
	status, response, err := b.Try(http.MethodGet, b.Path("vhosts"), nil)
	if err != nil {
		return err
	}
	var vhost struct {
		Nodes map[string]string `json:"cluster_state"`
	}
	if err := json.Unmarshal(response, &vhost); err != nil || status != http.StatusOK {
		return fmt.Errorf("%d %s", status, response)
	}
	for node, state := range vhost.Nodes {
		if state != "running" {
			return fmt.Errorf("%s on %s", state, node)
		}
	}
	return nil
}

// remove deletes the virtual host. A busy broker closes the connection after 60 s without an answer, but still deletes the
// virtual host. The next request then finds that it does not exist.
func (b *Broker) remove(t testing.TB) {
	t.Helper()
	Eventually(t, func() error {
		status, response, err := b.Try(http.MethodDelete, b.Path("vhosts"), nil)
		if err == nil && status >= 300 && status != http.StatusNotFound {
			err = fmt.Errorf("%d %s", status, response)
		}
		return err
	})
}

// Call is [Broker.Request] for a request that must succeed. It decodes the answer's JSON into the variable that into points
// to, unless into is nil.
func (b *Broker) Call(t testing.TB, method, path string, body, into any) {
	t.Helper()
	status, response := b.Request(t, method, path, body)
	if status < 200 || status > 299 {
		t.Fatalf("%s %s: %d %s", method, path, status, response)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(response, into); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, response)
	}
}

// DeclareQueue declares a durable queue of this type, with further arguments.
func (b *Broker) DeclareQueue(t testing.TB, name, queueType string, arguments map[string]any) {
	t.Helper()
	all := map[string]any{"x-queue-type": queueType}
	maps.Copy(all, arguments)
	b.Call(t, http.MethodPut, b.Path("queues", name), map[string]any{"durable": true, "arguments": all}, nil)
}
