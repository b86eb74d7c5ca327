//go:build bench

package benchworker

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// startShovel has the broker move the messages, with or without a network in between.
func startShovel(connects bool) func(t *testing.T, p *benchPipeline, n, window int) func() benchtest.Usage {
	return func(t *testing.T, p *benchPipeline, _, window int) func() benchtest.Usage {
		t.Helper()
		uri := "amqp:///" + url.PathEscape(p.Vhost)
		if connects {
			uri = p.VhostURI()
		}
		path := p.Path("parameters/shovel", "bench")
		status, answer := p.Request(t, http.MethodPut, path, map[string]any{"value": map[string]any{
			"src-protocol": "amqp091", "src-uri": uri, "src-queue": names.Inbox(), "src-prefetch-count": window,
			"dest-protocol": "amqp091", "dest-uri": uri, "dest-exchange": names.RetryExchange(), "dest-exchange-key": pipeline.DelayKey(delay),
			"ack-mode": "on-confirm",
		}})
		if status != http.StatusCreated {
			t.Fatalf("the broker needs the plugin rabbitmq_shovel: %d %s", status, answer)
		}
		return func() benchtest.Usage {
			t.Helper()
			if status, answer := p.Request(t, http.MethodDelete, path, nil); status != http.StatusNoContent {
				t.Fatalf("%d %s", status, answer)
			}
			return benchtest.Usage{}
		}
	}
}
