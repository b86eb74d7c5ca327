//go:build interop

package interop

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

const (
	guide   = "../../templates/guides/reading-a-dead-letter.md.tmpl"
	created = "orders.created"
	paid    = "orders.paid"
	failed  = "orders.failed"
)

// The script of the guide counts, puts back and saves what is in the failed queue. No message loses its address: not
// one whose work queue has lost its binding, and not one that the broker moved.
func TestScriptOfTheGuide(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "replay")
	config := fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name        = "orders"
  vhost       = %q
  delays      = ["100ms"]
  work_queues = { for name in [%q, %q] : name => { declare = true } }
}
output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] }) }`, b.Vhost, created, paid)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: providers,
		Steps: []resource.TestStep{{Config: config, ExpectNonEmptyPlan: true, Check: func(state *terraform.State) error {
			s := newScript(t, b)
			publish(t, b, created, "moved")
			reject(t, b, created, "moved")
			reject(t, b, "orders.inbox", "moved") // as a worker does that cannot republish it
			startSidecar(t, b, state.RootModule().Outputs["worker"].Value.(string))
			publish(t, b, created, "bound")
			publish(t, b, paid, "unbound")
			for range 2 {
				reject(t, b, created, "bound")
				reject(t, b, paid, "unbound")
			}
			s.waitFor(3)
			s.run("count", 1, "exhausted", "1 exhausted "+created, "1 exhausted "+paid, "1 None "+created, "count: 0")
			s.waitFor(3)

			unbind(t, b, paid)
			s.run("put back", 1, "exhausted", "put back: 1")
			s.run("put back", 9, "exhausted", "put back: 1")
			failsFromTheStart(t, b, created, "bound")
			failsFromTheStart(t, b, paid, "unbound")
			s.waitFor(3)

			unbind(t, b, created)
			s.run("put back", 9, "", "put back: 1")
			failsFromTheStart(t, b, created, "moved")
			s.waitFor(3)

			s.run("save", 9, "exhausted", "save: 3")
			s.waitFor(0)
			saved, err := os.ReadFile(filepath.Join(s.directory, "failed.jsonl"))
			if n := strings.Count(string(saved), `"message_id": "m-`); err != nil || n != 3 {
				t.Errorf("%d messages saved (%v): %s", n, err, saved)
			}
			return nil
		}}},
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
	if err := b.Channel(t).QueueUnbind(queue, "return:"+queue, "orders.return", nil); err != nil {
		t.Fatal(err)
	}
}

// reject takes the next message, which has to be the one that was published with this key.
func reject(t *testing.T, b *brokertest.Broker, queue, key string) (d amqp.Delivery) {
	t.Helper()
	ch := b.Channel(t)
	brokertest.Eventually(t, 20*time.Second, func() error {
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
	if err := d.Nack(false, false); err != nil {
		t.Fatal(err)
	}
	return d
}

// script is that of the guide, with the permissions that the guide says.
type script struct {
	*testing.T
	broker               *brokertest.Broker
	text, uri, directory string
}

func newScript(t *testing.T, b *brokertest.Broker) script {
	t.Helper()
	content, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(content)
	uri, err := url.Parse(b.VhostURI())
	if match == nil || err != nil {
		t.Fatalf("%s has no script (%v)", guide, err)
	}
	uri.User = url.UserPassword(b.User(t, "", "^$", `^orders\.return$`, `^orders\.failed$`))
	return script{T: t, broker: b, text: string(match[1]), uri: uri.String(), directory: t.TempDir()}
}

// run edits the script as a reader does. Without a reason it chooses messages that the broker moved.
func (s script) run(action string, limit int, reason string, want ...string) {
	s.Helper()
	text := s.text
	for old, edited := range map[string]string{
		`(?m)^URI = .*$`:        fmt.Sprintf("URI = %q", s.uri),
		`(?m)^ACTION = "count"`: fmt.Sprintf("ACTION = %q", action),
		`(?m)^LIMIT = 1\b`:      fmt.Sprintf("LIMIT = %d", limit),
		`reason == "exhausted"`: map[bool]string{true: "reason is None", false: fmt.Sprintf("reason == %q", reason)}[reason == ""],
	} {
		pattern := regexp.MustCompile(old)
		if n := len(pattern.FindAllString(text, -1)); n != 1 {
			s.Fatalf("the script has %d of %s", n, old)
		}
		text = pattern.ReplaceAllLiteralString(text, edited)
	}
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "/usr/bin/python3", "-c", text)
	command.Dir = s.directory
	output, err := command.CombinedOutput()
	if err != nil {
		s.Fatalf("%v\n%s", err, output)
	}
	for _, line := range want {
		if !strings.Contains("\n"+string(output), "\n"+line+"\n") {
			s.Errorf("%s printed\n%swant %s", action, output, line)
		}
	}
}

// waitFor waits until the failed queue holds so many messages.
func (s script) waitFor(want int) {
	s.Helper()
	brokertest.Eventually(s, 20*time.Second, func() error {
		queue, err := s.broker.Channel(s).QueueDeclarePassive(failed, true, false, false, false, nil)
		if err == nil && queue.Messages != want {
			err = fmt.Errorf("%d messages in the failed queue, want %d", queue.Messages, want)
		}
		return err
	})
}
