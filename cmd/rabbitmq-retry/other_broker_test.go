package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

// Every command that needs a broker says of one that is not RabbitMQ what it is, and ends, although that broker does not answer
// what it is asked next.
func TestOtherBrokersAreNamed(t *testing.T) {
	t.Parallel()
	const needed = "RabbitMQ 3.10 or later is needed"
	file := write(t, "")
	for _, name := range []string{"OtterMQ", "LavinMQ"} {
		env := map[string]string{cli.EnvConfigJSON: goodConfig, cli.EnvURI: brokertest.OtherBroker(t, name)}
		for _, command := range []string{
			"worker", "worker --check", "status orders", "status --queue q",
			"failed list orders", "failed list --queue q", "failed list --queue events.delay.unrouted", "failed show orders 12345678",
			"failed replay orders --all", "failed export orders", "failed import orders " + file,
			"failed delete orders --all --discard --yes", "failed repair orders --yes",
		} {
			t.Run(name+" "+command, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				code, stdout, stderr := execute(ctx, env, strings.Fields(command)...)
				if code != exitError || strings.Count(stderr, "not RabbitMQ, but "+name+" 1.2.3: "+needed) != 1 {
					t.Errorf("exit code %d: %s%s", code, stdout, stderr)
				}
			})
		}
	}
	env := map[string]string{cli.EnvEndpoint: brokertest.LavinMQ(t), cli.EnvUsername: "guest", cli.EnvPassword: "guest"}
	code, stdout, stderr := execute(t.Context(), env, "audit")
	if code != exitError || !strings.Contains(stderr, "not RabbitMQ, but LavinMQ 2.4.0: "+needed) {
		t.Errorf("audit: exit code %d: %s%s", code, stdout, stderr)
	}
}
