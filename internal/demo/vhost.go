package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// cleanUpTime limits the deletion of the virtual host, which also happens after an interrupt.
const cleanUpTime = 30 * time.Second

// broker is the demo's own virtual host.
type broker struct {
	settings
	vhost   string
	version string
}

// newVhost creates a virtual host with a random name and gives the user all permissions in it.
func newVhost(ctx context.Context, s settings) (*broker, error) {
	b := &broker{settings: s, vhost: "demo-" + strings.ToLower(rand.Text()[:6])}
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	if err := b.call(ctx, http.MethodGet, "overview", nil, &overview); err != nil {
		return nil, err
	}
	b.version = overview.Version
	if err := b.call(ctx, http.MethodPut, "vhosts/"+url.PathEscape(b.vhost), struct{}{}, nil); err != nil {
		return nil, fmt.Errorf("create a virtual host, which requires the tag administrator: %w", err)
	}
	everything := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
	path := "permissions/" + url.PathEscape(b.vhost) + "/" + url.PathEscape(b.username)
	if err := b.call(ctx, http.MethodPut, path, everything, nil); err != nil {
		return nil, errors.Join(err, b.delete(ctx))
	}
	return b, nil
}

// cleanUp deletes the virtual host, whether the demo succeeded or not.
func (b *broker) cleanUp(ctx context.Context, out *output, err error) error {
	if deleteErr := b.delete(ctx); deleteErr != nil {
		out.bad("\nThe virtual host %s is still there: %s", b.vhost, deleteErr)
		return errors.Join(err, deleteErr)
	}
	out.step("deleted the virtual host %s with all its objects", b.vhost)
	if err == nil {
		out.faint("(`terraform destroy` fails while there are messages in orders.failed.)")
	}
	return err
}

func (b *broker) delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	return b.call(ctx, http.MethodDelete, "vhosts/"+url.PathEscape(b.vhost), nil, nil)
}

// call sends a request to the management API.
func (b *broker) call(ctx context.Context, method, path string, body, result any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(b.endpoint, "/")+"/api/"+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	req.SetBasicAuth(b.username, b.password)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if content, err = io.ReadAll(resp.Body); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: the broker answered %s: %s", method, path, resp.Status, content)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(content, result)
}

// dial connects to the virtual host as one of the demo's clients.
func (b *broker) dial(name string) (*amqp.Connection, error) {
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(name)
	return amqp.DialConfig(b.uri, amqp.Config{Vhost: b.vhost, Properties: properties})
}
