//go:build interop

package interop

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

const (
	created = "orders.created"
	paid    = "orders.paid"
	failed  = "orders.failed"
)

// The commands count, replay and save what is in the failed queue, with the permissions of an operator. No message loses
// its address: not one whose work queue has lost its binding, and not one that the broker moved.
func TestCommandsOfTheGuides(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "replay")
	config := pipelineOf(b, "orders", []string{created, paid}, `delays = ["100ms"]`)
	apply(t, b, resource.TestStep{Config: config, ExpectNonEmptyPlan: true}, func(startSidecar func()) {
		s := newOperator(t, b, "replay")
		publish(t, b, created, "moved")
		reject(t, b, created, "moved")
		reject(t, b, "orders.inbox", "moved") // as a worker does that cannot republish it
		startSidecar()
		publish(t, b, created, "bound")
		publish(t, b, paid, "unbound")
		for range 2 {
			reject(t, b, created, "bound")
			reject(t, b, paid, "unbound")
		}
		s.waitFor(3)
		s.run("1 exhausted "+created, "failed", "list")
		s.run("1 exhausted "+paid, "failed", "list")
		s.run("1 malformed "+created, "failed", "list")
		s.waitFor(3)

		unbind(t, b, paid)
		s.run("replayed 1 of 2", "failed", "replay", "--reason", "exhausted", "--limit", "1", "--yes")
		s.run("replayed 1 of 1", "failed", "replay", "--reason", "exhausted", "--yes")
		failsFromTheStart(t, b, created, "bound")
		failsFromTheStart(t, b, paid, "unbound")
		s.waitFor(3)

		unbind(t, b, created)
		s.run("replayed 1 of 1", "failed", "replay", "--reason", "malformed", "--yes")
		failsFromTheStart(t, b, created, "moved")
		s.waitFor(3)

		file := filepath.Join(t.TempDir(), "failed.jsonl")
		s.run("deleted 3 of 3", "failed", "delete", "--reason", "exhausted", "--export", file, "--yes")
		s.waitFor(0)
		saved, err := os.ReadFile(file)
		if n := strings.Count(string(saved), `"message_id":"m-`); err != nil || n != 3 {
			t.Errorf("%d messages saved (%v): %s", n, err, saved)
		}
	})
}

// failsFromTheStart rejects a message until it is parked.
func failsFromTheStart(t *testing.T, b *brokertest.Broker, queue, id string) {
	t.Helper()
	for attempt := range 2 {
		h := reject(t, b, queue, id).Headers
		if count, has := h["retry-count"]; h["retry-exchange"] != "shop" || h["retry-queue"] != queue || h["tenant"] != "eu" ||
			has != (attempt > 0) || has && count != int64(attempt) {
			t.Errorf("delivery %d of %s: %v", attempt+1, id, h)
		}
		if _, has := h["dead-letter-reason"]; has {
			t.Errorf("delivery %d of %s: %v", attempt+1, id, h)
		}
	}
}

func unbind(t *testing.T, b *brokertest.Broker, queue string) {
	t.Helper()
	if err := b.Channel(t).QueueUnbind(queue, "return:"+queue, "orders.return", amqp.Table{pipeline.DeclaredArgument: "orders"}); err != nil {
		t.Fatal(err)
	}
}

// reject takes the next message, which has to be the one that was published with this key.
func reject(t *testing.T, b *brokertest.Broker, queue, key string) (d amqp.Delivery) {
	t.Helper()
	ch := b.Channel(t)
	brokertest.Eventually(t, func() error {
		var ok bool
		var err error
		if d, ok, err = ch.Get(queue, false); err == nil && !ok {
			err = fmt.Errorf("no message in %s", queue)
		}
		return err
	})
	if d.MessageId != "m-"+key {
		t.Fatalf("%s has %s, want %s", queue, d.MessageId, "m-"+key)
	}
	require.NoError(t, d.Nack(false, false))
	return d
}

// operator looks after the failed queue.
type operator struct {
	*testing.T
	broker       *brokertest.Broker
	sidecar, uri string
}

// newOperator is a user with the permissions of one command.
func newOperator(t *testing.T, b *brokertest.Broker, command string) operator {
	t.Helper()
	permissions := pipeline.OperatorPermissions(pipeline.Pipeline{Name: "orders"})[command]
	uri, err := url.Parse(b.VhostURI())
	require.NoError(t, err)
	uri.User, uri.Path = url.UserPassword(b.User(t, "", permissions.Configure, permissions.Write, permissions.Read)), ""
	return operator{T: t, broker: b, sidecar: terraformtest.BuildSidecar(t), uri: uri.String()}
}

// run runs a command, which has to say this, in however many spaces.
func (s operator) run(want string, command ...string) (printed string) {
	s.Helper()
	program := exec.CommandContext(brokertest.Bounded(s), s.sidecar, append(command, "orders", "--vhost", s.broker.Vhost)...)
	program.Env = append(os.Environ(), "RABBITMQ_URI="+s.uri)
	output, err := program.CombinedOutput()
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(output)), " "), want) {
		s.Errorf("%s: %v, printed\n%swant %q", command, err, output, want)
	}
	return string(output)
}

// waitFor waits until the failed queue holds so many messages.
func (s operator) waitFor(want int) {
	s.Helper()
	brokertest.Eventually(s, func() error {
		queue, err := s.broker.Channel(s).QueueDeclarePassive(failed, true, false, false, false, nil)
		if err == nil && queue.Messages != want {
			err = fmt.Errorf("%d messages in the failed queue, want %d", queue.Messages, want)
		}
		return err
	})
}
