//go:build load

package loadtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// moves lead the queue "moving" from pipeline to pipeline, to an attachment and back. Each is an apply of its own.
var moves = []struct {
	what, pipelines string
}{
	{"create", has("a", "{}")},
	{"b takes over", has("a", "{}") + has("b", `{ take_over_from = "a" }`)},
	{"a lets go", has("a", "") + has("b", `{ take_over_from = "a" }`)},
	{"moved to b", has("a", "") + has("b", "{}")},
	{"a takes over", has("a", `{ take_over_from = "b" }`) + has("b", "{}")},
	{"b lets go", has("a", `{ take_over_from = "b" }`) + has("b", "")},
	{"moved back to a", has("a", "{}") + has("b", "")},
	{"renamed takes over", has("a", "{}") + has("b", "") + has("renamed", `{ take_over_from = "a" }`)},
	{"a is destroyed", has("b", "") + has("renamed", `{ take_over_from = "a" }`)},
	{"moved to renamed", has("b", "") + has("renamed", "{}")},
	{"an attachment to b takes over", has("b", "") + has("renamed", "{}") + attachmentToB("renamed")},
	{"renamed lets go", has("b", "") + has("renamed", "") + attachmentToB("renamed")},
	{"moved to the attachment", has("b", "") + has("renamed", "") + attachmentToB("")},
	{"renamed takes over from the attachment", has("b", "") + has("renamed", `{ take_over_from = "b" }`) + attachmentToB("")},
	{"the attachment is destroyed", has("b", "") + has("renamed", `{ take_over_from = "b" }`)},
	{"moved back to renamed", has("b", "") + has("renamed", "{}")},
}

// has is a pipeline that has the queue with these settings, or not if there are none.
func has(name, settings string) string {
	if settings != "" {
		settings = "moving = " + settings
	}
	return fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" %q {
  name         = %q
  vhost        = var.vhost
  delays       = ["1s", "2s"]
  max_attempts = 3
  work_queues  = { %s }
  timeouts     = { delete = "3m" }
}
`, name, name, settings)
}

// attachmentToB attaches the queue to the pipeline b.
func attachmentToB(from string) string {
	more := ""
	if from != "" {
		more = fmt.Sprintf("take_over_from = %q", from)
	}
	return fmt.Sprintf(`
resource "rabbitmq_retry_attachment" "moving" {
  pipeline = rabbitmq_retry_pipeline.b.name
  vhost    = var.vhost
  queue    = "moving"
  %s
}
`, more)
}

func movesConfig(vhost, pipelines string) string {
	var workers []string
	for _, name := range []string{"a", "b", "renamed"} {
		if strings.Contains(pipelines, fmt.Sprintf("name         = %q", name)) {
			workers = append(workers, "rabbitmq_retry_pipeline."+name+".worker")
		}
	}
	return terraformtest.Required + fmt.Sprintf(`

variable "vhost" { default = %q }
%s
output "worker" { value = jsonencode({ pipelines = [%s] }) }
`, vhost, pipelines, strings.Join(workers, ", "))
}

// A queue moves while a third of its messages is rejected once or twice. Each is processed by its third delivery, which is
// the last one that the pipelines make: none may be lost, or counted twice on the way.
func TestMovesUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	l := newLoad(t, "moving")
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	worker := &sidecar{uri: l.URI, dir: t.TempDir()}
	l.modes.set(map[string]mode{"moving": rejected})
	var stop func()
	for i, move := range moves {
		tf.Write(t, "main.tf", movesConfig(l.Vhost, move.pipelines))
		began := time.Now()
		plan := tf.Run(t, "plan", "-input=false", "-no-color")
		if strings.Contains(plan, "Rejected messages will be dropped") {
			t.Errorf("%s: the plan warns although nothing is lost:\n%s", move.what, plan)
		}
		tf.Run(t, applying...)
		t.Logf("%s: %.1f s; %s", move.what, time.Since(began).Seconds(), l.ledger)
		worker.restart(t, tf.Run(t, "output", "-raw", "worker"))
		if i == 0 {
			l.processByThird(t, "moving")
			stop = l.startPublishing(t)
		}
		l.awaitMore(t, 4*perSecond)
	}
	stop()
	for _, failed := range []string{"b.failed", "renamed.failed"} {
		l.collectFailed(t, failed)
	}
	l.drain(t)
	worker.stop(t)
	l.requireNothingLost(t)
	for id, why := range l.ledger.failed {
		t.Errorf("%s is in a failed queue: %s", id, why)
	}
	tf.Write(t, "main.tf", movesConfig(l.Vhost, has("b", "")+has("renamed", "")))
	if plan := tf.Run(t, "plan", "-input=false", "-no-color"); !strings.Contains(plan, "Rejected messages will be dropped") {
		t.Errorf("nobody gets what is rejected after this plan, and it does not say so:\n%s", plan)
	}
}

// processByThird rejects every third message once or twice. A delivery says how often it was rejected before.
func (l *load) processByThird(t *testing.T, queue string) {
	t.Helper()
	ch := l.Channel(t)
	require.NoError(t, ch.Qos(50, 0, false))
	deliveries, err := ch.Consume(queue, queue, false, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		rejections := map[string]int{}
		for d := range deliveries {
			l.processByThirdDelivery(t, d, rejections)
		}
	}()
}

func (l *load) processByThirdDelivery(t *testing.T, d amqp.Delivery, rejections map[string]int) {
	var number int
	_, _ = fmt.Sscanf(d.MessageId, "%06d", &number)
	before := rejections[d.MessageId]
	if count, _ := d.Headers["retry-count"].(int64); int(count) != before {
		t.Errorf("%s was rejected %d times and counted %d times", d.MessageId, before, count)
	}
	var err error
	if number%3 == 0 && before <= number%2 {
		rejections[d.MessageId]++
		l.ledger.with(func() { l.ledger.rejections++ })
		err = d.Reject(false)
	} else if err = d.Ack(false); err == nil {
		l.ledger.with(func() { l.ledger.processed[d.MessageId]++ })
	}
	if err != nil && t.Context().Err() == nil {
		t.Errorf("%s: %v", d.MessageId, err)
	}
}
