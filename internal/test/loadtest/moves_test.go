//go:build load

package loadtest

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
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
func has(name, settings string) string { return hasWith("worker", name, settings) }

// hasWith is the same with an engine. The third delivery is the last one.
func hasWith(engine, name, settings string) string {
	delays := map[string]string{"worker": `"1s", "2s"`, "native": `"1s", "2s"`, "consumer": `"1s"`}[engine]
	if settings != "" {
		settings = "moving = " + settings
	}
	return fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" %[1]q {
  name         = %[1]q
  vhost        = var.vhost
  engine       = %[2]q
  delays       = [%[3]s]
  max_attempts = 3
  work_queues  = { %[4]s }
  timeouts     = { delete = "3m" }
}
`, name, engine, delays, settings)
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

// made lists those pipelines that are among others.
func made(pipelines string) (names []string) {
	for _, name := range []string{"a", "b", "renamed"} {
		if strings.Contains(pipelines, fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" %q", name)) {
			names = append(names, name)
		}
	}
	return names
}

// moving is a load on the queue "moving", and the pipelines that have it.
type moving struct {
	*load

	tf     *terraformtest.CLI
	worker *sidecar
	// copies came with a lower count than their message had been rejected.
	copies map[string]bool
}

func newMoving(t *testing.T) *moving {
	t.Helper()
	m := &moving{load: newLoad(t, "moving"), tf: terraformtest.New(t, terraformtest.BuildProvider(t)), copies: map[string]bool{}}
	m.worker = &sidecar{uri: m.URI, dir: t.TempDir()}
	m.modes.set(map[string]mode{"moving": rejected})
	return m
}

// configure writes the pipelines. The sidecar serves those that have one.
func (m *moving) configure(t *testing.T, pipelines string) {
	t.Helper()
	var workers []string
	for _, name := range made(pipelines) {
		workers = append(workers, "rabbitmq_retry_pipeline."+name+".worker")
	}
	m.tf.Write(t, "main.tf", terraformtest.Required+fmt.Sprintf(`

variable "vhost" { default = %q }
%s
output "worker" { value = jsonencode({ pipelines = [for w in [%s] : w if w != null] }) }
`, m.Vhost, pipelines, strings.Join(workers, ", ")))
}

func (m *moving) apply(t *testing.T, what string) {
	t.Helper()
	began := time.Now()
	m.tf.Run(t, applying...)
	t.Logf("%s: %.1f s; %s", what, time.Since(began).Seconds(), m.ledger)
	if config := m.tf.Run(t, "output", "-raw", "worker"); strings.Contains(config, `"name"`) {
		m.worker.restart(t, config)
	} else {
		m.worker.stop(t)
	}
}

// requireNoneFailed requires each message to be processed in the end.
func (m *moving) requireNoneFailed(t *testing.T) {
	t.Helper()
	m.drain(t)
	m.worker.stop(t)
	m.requireNothingLost(t)
	for id, why := range m.ledger.failed {
		t.Errorf("%s is in a failed queue: %s", id, why)
	}
	for id := range m.copies {
		if m.ledger.processed[id] < 2 {
			t.Errorf("%s lost a count on its way", id)
		}
	}
}

// A queue moves while a third of its messages is rejected once or twice. Each is processed by its third delivery, which is
// the last one that the pipelines make: none may be lost, or counted twice on the way.
func TestMovesUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	const warning = "Rejected messages will be dropped"
	var stop func()
	for i, move := range moves {
		m.configure(t, move.pipelines)
		if plan := m.tf.Run(t, "plan", "-input=false", "-no-color"); strings.Contains(plan, warning) {
			t.Errorf("%s: the plan warns although nothing is lost:\n%s", move.what, plan)
		}
		m.apply(t, move.what)
		if i == 0 {
			m.processByThird(t)
			stop = m.startPublishing(t)
		}
		m.awaitMore(t, 4)
	}
	stop()
	for _, failed := range []string{"b.failed", "renamed.failed"} {
		m.collectFailed(t, failed)
	}
	m.requireNoneFailed(t)
	m.configure(t, has("b", "")+has("renamed", ""))
	if plan := m.tf.Run(t, "plan", "-input=false", "-no-color"); !strings.Contains(plan, warning) {
		t.Errorf("nobody gets what is rejected after this plan, and it does not say so:\n%s", plan)
	}
}

// processByThird rejects every third message once or twice. A delivery says how often it was rejected before, or less if it is
// a second copy.
func (m *moving) processByThird(t *testing.T) {
	t.Helper()
	rejections := map[string]int{}
	m.each(t, "moving", 50, func(d amqp.Delivery) {
		var number int
		_, _ = fmt.Sscanf(d.MessageId, "%06d", &number)
		before := rejections[d.MessageId]
		switch count, _ := d.Headers["retry-count"].(int64); {
		case int(count) > before:
			t.Errorf("%s was rejected %d times and counted %d times", d.MessageId, before, count)
		case int(count) < before:
			m.ledger.with(func() { m.copies[d.MessageId] = true })
		}
		rejects := number%3 == 0 && before <= number%2
		if rejects {
			rejections[d.MessageId]++
		}
		m.answer(t, d, rejects)
	})
}

// engineMove leads the queue "moving" from the pipeline a to b, which has another engine, and back.
type engineMove struct {
	from, to string
	short    bool // part of the short form
}

var engineMoves = []engineMove{
	{"worker", "native", true},
	{"worker", "consumer", false},
	{"consumer", "native", false},
}

// engineStep is an apply, and which setting consumers have before and after it.
type engineStep struct {
	what, pipelines string
	before, after   setting
}

// steps are those of the guide "Changing, moving, importing, destroying": on the way there the old pipeline lets go, on the
// way back it is destroyed. Between engines whose calls differ, consumers hold what fails while the queue is taken over.
func (m engineMove) steps() []engineStep {
	there, back := settingOf[m.to], settingOf[m.from]
	during := there
	if there != back {
		during = hold
	}
	a := func(settings string) string { return hasWith(m.from, "a", settings) }
	b := func(settings string) string { return hasWith(m.to, "b", settings) }
	return []engineStep{
		{"create", a("{}"), back, back},
		{"b takes over", a("{}") + b(`{ take_over_from = "a" }`), during, there},
		{"a lets go", a("") + b(`{ take_over_from = "a" }`), there, there},
		{"moved to b", a("") + b("{}"), there, there},
		{"a takes over", a(`{ take_over_from = "b" }`) + b("{}"), during, back},
		{"b is destroyed", a(`{ take_over_from = "b" }`), back, back},
		{"moved back to a", a("{}"), back, back},
	}
}

// A queue moves to another engine and back while each of its messages fails twice, or for a while. Its third delivery is the
// last one that each engine makes: none may be lost, or parked.
func TestMovesBetweenEnginesLoseNothing(t *testing.T) {
	t.Parallel()
	for _, move := range engineMoves {
		t.Run(move.from+" and "+move.to, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && !move.short {
				t.Skip("not part of the short form") // `make test-load` makes all moves
			}
			m := newMoving(t)
			m.Needs(t, brokertest.Engine(move.from), brokertest.Engine(move.to))
			m.betweenEngines(t, move.steps())
		})
	}
}

func (m *moving) betweenEngines(t *testing.T, steps []engineStep) {
	t.Helper()
	consumers := []*thirdTimer{{load: m.load}, {load: m.load}}
	for _, c := range consumers {
		c.setting.Store(int32(steps[0].before))
	}
	var stop func()
	var began time.Time
	for i, step := range steps {
		m.switchTo(t, consumers, step.before)
		m.configure(t, step.pipelines)
		m.apply(t, step.what)
		if i == 0 {
			stop, began = m.startPublishing(t), time.Now()
			for _, c := range consumers {
				c.start(t)
			}
		}
		m.switchTo(t, consumers, step.after)
		m.awaitMore(t, 4)
		for _, name := range made(step.pipelines) {
			m.takeFailed(t, name+".failed")
		}
	}
	stop()
	t.Logf("%.0f messages a second", float64(m.ledger.sent())/time.Since(began).Seconds())
	m.requireNoneFailed(t)
}

// switchTo gives the consumers another setting, one after the other, as a deployment does. What they rejected before one
// that holds has left the queue then.
func (l *load) switchTo(t *testing.T, consumers []*thirdTimer, to setting) {
	t.Helper()
	changed := false
	for _, c := range consumers {
		if c.setting.Swap(int32(to)) != int32(to) {
			l.awaitMore(t, 1)
			changed = true
		}
	}
	if !changed || to != hold {
		return
	}
	l.awaitMore(t, 5) // brokers count every five seconds
	brokertest.Eventually(t, func() error {
		var found struct {
			Pending int `json:"messages_dlx"`
		}
		l.Call(t, http.MethodGet, l.Path("queues", "moving"), nil, &found)
		if found.Pending > 0 {
			return fmt.Errorf("%d dead letters are pending", found.Pending)
		}
		return nil
	})
}

// takeFailed enters what is in a failed queue now, and why.
func (l *load) takeFailed(t *testing.T, queue string) {
	t.Helper()
	for d, ok := l.Get(t, queue); ok; d, ok = l.Get(t, queue) {
		reason, ours := d.Headers["dead-letter-reason"].(string)
		if !ours {
			reason, _ = d.Headers["x-last-death-reason"].(string)
		}
		l.ledger.with(func() { l.ledger.failed[d.MessageId] = append(l.ledger.failed[d.MessageId], queue+" "+reason) })
	}
}

// setting is what a consumer does with a message that fails: the guide "Choosing an engine" has these three.
type setting int32

const (
	nack   setting = iota // what worker and consumer need
	hold                  // harmless for all
	reject                // what native needs
)

var settingOf = map[string]setting{"worker": nack, "consumer": nack, "native": reject}

// thirdTime is the attempt that succeeds, and the last one.
const thirdTime = 3

// held is how long a consumer holds a message that failed.
const held = time.Second

// outage is how long one message in ten fails, however often it is delivered: what comes back at once uses up its attempts.
const outage = 1500 * time.Millisecond

// thirdTimer is a consumer for which messages fail twice.
type thirdTimer struct {
	*load

	setting atomic.Int32
}

func (c *thirdTimer) start(t *testing.T) {
	t.Helper()
	c.each(t, "moving", 3*perSecond(), func(d amqp.Delivery) { // more than fail while one is held
		if c.fails(d.MessageId) {
			c.fail(t, d)
		} else {
			c.answer(t, d, false)
		}
	})
}

// fails decides by how often the message was delivered or, for one in ten, by how long ago that began.
func (c *thirdTimer) fails(id string) (fails bool) {
	var number int
	_, _ = fmt.Sscanf(id, "%06d", &number)
	c.ledger.with(func() {
		c.ledger.delivered[id]++
		if c.ledger.delivered[id] == 1 {
			c.ledger.first[id] = time.Now()
		}
		fails = c.ledger.delivered[id] < thirdTime
		if number%10 == 0 {
			fails = time.Since(c.ledger.first[id]) < outage
		}
		if fails {
			c.ledger.rejections++
		}
	})
	return fails
}

func (c *thirdTimer) fail(t *testing.T, d amqp.Delivery) {
	switch setting(c.setting.Load()) {
	case nack:
		if attempt(d) >= thirdTime {
			t.Errorf("%s: a consumer that counts would park it: %v", d.MessageId, d.Headers)
		}
		c.check(t, d, d.Nack(false, false))
	case hold:
		time.AfterFunc(held, func() { c.check(t, d, d.Nack(false, true)) })
	case reject:
		c.check(t, d, d.Reject(true))
	}
}

// attempt is which one a delivery is, by what the broker has noted: consumers that count read it like this.
func attempt(d amqp.Delivery) int64 {
	deaths, _ := d.Headers["x-death"].([]any)
	for _, each := range deaths {
		death, _ := each.(amqp.Table)
		if count, ok := death["count"].(int64); ok && death["queue"] == "moving" && death["reason"] == "rejected" {
			return count + 1
		}
	}
	return 1
}
