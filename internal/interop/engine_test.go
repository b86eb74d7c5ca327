//go:build interop

package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// The consumers of the guide count as they are printed, and the commands read and replay what they park.
func TestConsumersOfTheGuideCount(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"python", "go"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			b := brokertest.NewNamed(t, "counting")
			if !b.VersionAtLeast("4.0") {
				t.Skip("not supported by this release")
			}
			withoutWorker(t, b, `engine = "consumer"`, `delays = ["500ms"]`, func(s operator) {
				startConsumer(t, b, language)
				publish(t, b, created, "eu.order")
				s.waitFor(1)
				s.run("1 exhausted "+created, "list")
				m, ok := b.Get(t, failed)
				if text, _ := m.Headers["dead-letter-error"].(string); !ok || m.Headers["retry-count"] == nil || text == "" || m.MessageId != "m-eu.order" {
					t.Errorf("parked: %+v", m)
				}
			})
		})
	}
}

// What a queue that delays by itself has parked is read and replayed, too.
func TestCommandsReadWhatIsParkedNatively(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "native")
	if !b.VersionAtLeast("4.3.1") {
		t.Skip("not supported by this release")
	}
	withoutWorker(t, b, `engine = "native"`, `delays = ["100ms"]`, func(s operator) {
		publish(t, b, created, "eu.order")
		ch := b.Channel(t)
		deliveries, err := ch.Consume(created, "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range maxAttempts {
			if err := (<-deliveries).Reject(true); err != nil {
				t.Fatal(err)
			}
		}
		s.waitFor(1)
		s.run("1 delivery_limit "+created, "list")
		s.run("", "replay", "--yes")
		d := <-deliveries
		if d.RoutingKey != "eu.order" || d.MessageId != "m-eu.order" || d.Headers["replay-count"] != int64(1) {
			t.Errorf("replayed: %+v", d)
		}
		if err := d.Ack(false); err != nil {
			t.Fatal(err)
		}
	})
}

// withoutWorker makes a pipeline, and does something with it.
func withoutWorker(t *testing.T, b *brokertest.Broker, engine, delays string, do func(operator)) {
	t.Helper()
	config := fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name          = "orders"
  vhost         = %q
  %s
  %s
  max_attempts  = %d
  force_destroy = true
  work_queues   = { %q = { declare = true } }
}`, b.Vhost, engine, delays, maxAttempts, created)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: providers,
		Steps: []resource.TestStep{{Config: config, Check: func(*terraform.State) error {
			s := newOperator(t, b)
			do(s)
			s.hasNoInbox()
			return nil
		}}},
	})
}

// startConsumer runs the guide's code in a language.
func startConsumer(t *testing.T, b *brokertest.Broker, language string) {
	t.Helper()
	guide, err := os.ReadFile("../../docs/guides/which-engine.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, begins := strings.Cut(string(guide), "```"+language+"\n")
	code, _, ends := strings.Cut(code, "\n```\n")
	if !begins || !ends {
		t.Fatalf("the guide has no code in %s", language)
	}
	file := filepath.Join(t.TempDir(), "consumer."+map[string]string{"python": "py", "go": "go"}[language])
	if err := os.WriteFile(file, []byte(code+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := []string{"/usr/bin/python3", file}
	if language == "go" {
		run = []string{strings.TrimSuffix(file, ".go")}
		if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", run[0], file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	consumer := exec.CommandContext(ctx, run[0], run[1:]...)
	consumer.Env, consumer.Stderr = append(os.Environ(), "RABBITMQ_URI="+b.VhostURI()), os.Stderr
	if err := consumer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = consumer.Wait() })
}

// hasNoInbox asks for the status of a pipeline without a worker: nothing is missing.
func (s operator) hasNoInbox() {
	s.Helper()
	status := exec.CommandContext(s.Context(), s.sidecar, "status", "orders", "--vhost", s.broker.Vhost)
	status.Env = append(os.Environ(), "RABBITMQ_URI="+s.uri)
	if output, err := status.CombinedOutput(); err != nil || strings.Contains(string(output), "inbox") || !strings.Contains(string(output), failed) {
		s.Errorf("status: %v, printed\n%s", err, output)
	}
}
