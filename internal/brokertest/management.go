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
	"strings"
	"testing"
	"time"
)

// One client for all tests: connections are kept alive, also between tests that run side by side.
var client = &http.Client{
	Timeout:   Patience, // of many tests that begin at once on a busy machine, the last waits long for its vhost
	Transport: &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: 2 * time.Second},
}

// Path is the path of an object of this virtual host in the management API, with its names escaped:
// b.Path("queues", "a/b") is /api/queues/<vhost>/a%2Fb.
func (b *Broker) Path(kind string, names ...string) string {
	parts := []string{"/api", kind, url.PathEscape(b.Vhost)}
	for _, name := range names {
		parts = append(parts, url.PathEscape(name))
	}
	return strings.Join(parts, "/")
}

// attempts is how often a request is sent that the broker fails to answer. A node under load was seen
// to answer one DELETE among hundreds of thousands with 500 and nothing else (3.10.8).
const attempts = 3

// Request calls the management API as the administrator. The path begins with /api, its names are escaped (see
// [Broker.Path]); a body that is not nil is sent as JSON. Every status is an answer: only silence fails the test.
// What can be sent again is, if the broker does not answer, or with 500 or above.
func (b *Broker) Request(t testing.TB, method, path string, body any) (status int, response []byte) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		var err error
		status, response, err = b.Try(method, path, body)
		last := method == http.MethodPost || attempt == attempts
		switch {
		case err != nil && last:
			t.Fatalf("%s %s: %v", method, path, err)
		case err != nil: // a busy broker closes a connection on which an answer is due for a minute
		case attempt > 1 && method == http.MethodDelete && status == http.StatusNotFound:
			return http.StatusNoContent, nil // the attempt before did it
		case last, status < http.StatusInternalServerError && !bytes.Contains(response, []byte("cluster_not_formed")):
			return status, response
		}
		t.Logf("%s %s: %d %s %v", method, path, status, response, err)
		time.Sleep(firstPause)
	}
}

// Try is one attempt of [Broker.Request]. Unlike that, it is for any goroutine.
func (b *Broker) Try(method, path string, body any) (status int, response []byte, err error) {
	var sent []byte
	if body != nil {
		if sent, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	// Not the test's context: cleanups need the API after it has ended.
	request, err := http.NewRequestWithContext(context.Background(), method, b.Endpoint+path, bytes.NewReader(sent))
	if err != nil {
		return 0, nil, err
	}
	request.SetBasicAuth(b.Username, b.Password)
	request.Header.Set("Content-Type", "application/json")
	if method != http.MethodPost {
		// Not sent, but net/http may then repeat what meets a connection that the broker has just closed.
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

// create makes the virtual host. A busy broker takes longer than it keeps a connection that waits for an answer, and makes it
// none the less: who asks again is told that it exists, before it runs.
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

// remove deletes the virtual host. A busy broker takes longer for that than the 60 s after which it closes a connection
// that waits for an answer, and deletes it none the less: who asks again is told that it does not exist.
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

// Call is [Broker.Request] for what has to succeed. The answer's JSON goes into what into points to, unless it is nil.
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

// DeclareQueue makes a durable queue of this type, with these arguments besides.
func (b *Broker) DeclareQueue(t testing.TB, name, queueType string, arguments map[string]any) {
	t.Helper()
	all := map[string]any{"x-queue-type": queueType}
	maps.Copy(all, arguments)
	b.Call(t, http.MethodPut, b.Path("queues", name), map[string]any{"durable": true, "arguments": all}, nil)
}
