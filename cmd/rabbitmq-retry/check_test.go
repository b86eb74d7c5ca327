package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

func TestCheckLooksForInboxesAndExchanges(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := func(names ...string) string {
		var pipelines []string
		for _, name := range names {
			pipelines = append(pipelines, fmt.Sprintf(`{"version":1,"name":%q,"vhost":%q,"delays":["5s"],"max_attempts":4}`, name, b.Vhost))
		}
		return `{"pipelines":[` + strings.Join(pipelines, ",") + `]}`
	}
	b.Request(t, "PUT", b.Path("queues", "orders.inbox"), map[string]any{"durable": true})
	for _, exchange := range pipeline.Names("orders").WorkerExchanges() {
		b.Request(t, "PUT", b.Path("exchanges", exchange), map[string]any{"type": "direct", "durable": true})
	}
	permissions := pipeline.WorkerPermissions("orders")
	user, password := b.User(t, "", permissions.Configure, permissions.Write, permissions.Read)
	uri, err := url.Parse(b.URI)
	require.NoError(t, err)
	uri.User = url.UserPassword(user, password)
	file := write(t, uri.String()+"\n")

	code, stdout, stderr := execute(t.Context(), map[string]string{cli.EnvConfigJSON: config("orders")}, "worker", "--check", "--uri-file", file)
	if code != exitOK || !strings.Contains(stdout, "ok: orders.inbox has 0 messages and 0 consumers") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = execute(t.Context(), map[string]string{cli.EnvConfigJSON: config("none", "orders")}, "worker", "--check", "--uri-file", file)
	if code != exitError || strings.Count(stdout, "\n") != 2 || !strings.Contains(stdout, "error: look for the queue ") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, gone := range []string{"orders.failed", "orders.failed.route", "orders.return", "orders.retry"} {
		b.Request(t, "DELETE", b.Path("exchanges", gone), nil)
		code, stdout, stderr = execute(t.Context(), map[string]string{cli.EnvConfigJSON: config("orders")}, "worker", "--check", "--uri-file", file)
		if code != exitError || !strings.Contains(stdout, "error: look for the queue ") || !strings.Contains(stdout, "no exchange '"+gone+"'") {
			t.Errorf("without %s: exit code %d: %s%s", gone, code, stdout, stderr)
		}
	}
	if strings.Contains(stdout+stderr, password) {
		t.Errorf("the password is printed: %s%s", stdout, stderr)
	}
}
