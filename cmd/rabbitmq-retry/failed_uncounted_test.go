package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// RabbitMQ 4.2.6 and 4.3.0 tell no counts to a user without the permission to configure. The commands go on, and say what they do
// not know.
func TestFailedWithoutCounts(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"quorum", "classic"} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			o := newOrders(t, queueType)
			counted := o.env
			o.env = with(o.env, cli.EnvURI, brokertest.RefusingLooks(t, o.URI))
			for _, id := range []string{"order-1", "order-2", "order-3"} {
				o.park(t, "exhausted", id)
			}
			const reason, unknown = "RabbitMQ 4.2.6 and 4.3.0 ask for the permission configure", "it is not known whether"

			out, errs := o.run(t, exitError, "failed list orders -o id")
			ids := strings.Fields(out)
			require.Len(t, ids, 3, out+errs)
			contains(t, errs, "3 messages in orders.failed; put back", "As far as seen", reason, unknown)
			lacks(t, errs, "all put back")

			file := filepath.Join(t.TempDir(), "failed.jsonl")
			_, errs = o.run(t, exitError, "failed export orders --file "+file)
			contains(t, errs, "exported 3 messages", unknown)
			lacks(t, errs, "all put back")
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, 3, strings.Count(string(content), "\n"))
			o.holds(t, "orders.failed", 3)
			o.says(t, exitError, "failed import orders "+file+" --yes", unknown, "--allow-duplicates")
			o.says(t, exitError, "failed delete orders --all --discard --dry-run", "would delete 3 messages", unknown)
			o.says(t, exitError, "failed delete orders --reason malformed --discard --yes", "0 of 3 messages in orders.failed match", unknown)
			o.holds(t, "orders.failed", 3)

			_, errs = o.run(t, exitError, "failed delete orders --limit 1 --discard --yes")
			contains(t, errs, "deleted 1 of 1", "up to 1 message deleted that can still be in orders.failed")
			o.holds(t, "orders.failed", 2)
			out, _ = o.run(t, exitError, "failed list orders -o id")
			assert.Equal(t, ids[1:], strings.Fields(out), "order")
			_, errs = o.run(t, exitError, "failed replay orders --all --yes")
			contains(t, errs, "replayed 2 of 2", "up to 2 messages duplicated: replayed, and perhaps still in orders.failed")
			o.holds(t, "orders.failed", 0)
			o.holds(t, "orders.created", 2)
			o.says(t, exitError, "failed replay orders --all --yes", `no message of "orders.failed" came`, reason)

			o.Publish(t, "", "orders.inbox", amqp.Publishing{})
			o.says(t, exitFound, "status orders", reason, "give the address of the management API")
			o.env = with(with(o.env, cli.EnvUsername, o.Username), cli.EnvPassword, o.Password)
			brokertest.Eventually(t, func() error {
				_, stdout, stderr := execute(t.Context(), o.env, "status", "--queue", "orders.inbox", "--vhost", o.Vhost, "--endpoint", o.Endpoint)
				if !regexp.MustCompile(`orders\.inbox +1 +0 `).MatchString(stdout) {
					return errors.New(stdout + stderr)
				}
				return nil
			})
			o.env = counted
			o.run(t, exitOK, "failed list orders")
		})
	}
}
