//go:build load

package loadtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// engineMove leads the queue "moving" from the pipeline a to b, which has another engine, and back.
type engineMove struct {
	from, to string
	// release is the oldest one that has both engines.
	release string
	short   bool // part of the short form
}

var engineMoves = []engineMove{
	{"worker", "native", "4.3.1", true},
	{"worker", "consumer", "4.0", false},
	{"consumer", "native", "4.3.1", false},
}

// engineStep is an apply, and which setting consumers have before and after it.
type engineStep struct {
	what, pipelines string
	before, after   setting
}

// steps are those of the guide "Moving work queues": on the way there the old pipeline lets go, on the way back it is
// destroyed. Between engines whose calls differ, consumers hold what fails while the queue is taken over.
func (m engineMove) steps() []engineStep {
	there, back := settingOf[m.to], settingOf[m.from]
	during := there
	if there != back {
		during = hold
	}
	a, b := m.has("a", m.from), m.has("b", m.to)
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

// has is a pipeline of an engine that has the queue with some settings, or not if there are none. Its third delivery is
// the last.
func (m engineMove) has(name, engine string) func(settings string) string {
	delays := map[string]string{"worker": `"1s", "2s"`, "native": `"1s", "2s"`, "consumer": `"1s"`}[engine]
	return func(settings string) string {
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
}

// config is one in which the sidecar serves the pipelines that have one.
func (s engineStep) config(vhost string) string {
	var workers []string
	for _, name := range []string{"a", "b"} {
		if s.has(name) {
			workers = append(workers, "rabbitmq_retry_pipeline."+name+".worker")
		}
	}
	return terraformtest.Required + fmt.Sprintf(`

variable "vhost" { default = %q }
%s
output "worker" { value = jsonencode({ pipelines = [for w in [%s] : w if w != null] }) }
`, vhost, s.pipelines, strings.Join(workers, ", "))
}

// has reports whether the pipeline exists after the step.
func (s engineStep) has(name string) bool {
	return strings.Contains(s.pipelines, fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" %q", name))
}

// A queue moves to another engine and back while each of its messages fails twice, or for a while. Its third delivery is the
// last one that each engine makes: none may be lost, or parked.
func TestMovesBetweenEnginesLoseNothing(t *testing.T) {
	t.Parallel()
	for _, move := range engineMoves {
		t.Run(move.from+" and "+move.to, func(t *testing.T) {
			t.Parallel()
			l := newLoad(t, "moving")
			if !l.VersionAtLeast(move.release) || testing.Short() && !move.short {
				t.Skip("not supported by this release, or not part of the short form")
			}
			l.moveBetweenEngines(t, move)
		})
	}
}

func (l *load) moveBetweenEngines(t *testing.T, move engineMove) {
	t.Helper()
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	worker := &sidecar{uri: l.URI, dir: t.TempDir()}
	l.modes.set(map[string]mode{"moving": rejected})
	steps := move.steps()
	consumers := []*thirdTimer{l.newThirdTimer(t, "moving", steps[0].before), l.newThirdTimer(t, "moving", steps[0].before)}
	var stop func()
	var began time.Time
	for i, step := range steps {
		l.switchTo(t, consumers, step.before)
		tf.Write(t, "main.tf", step.config(l.Vhost))
		started := time.Now()
		tf.Run(t, applying...)
		t.Logf("%s: %.1f s; %s", step.what, time.Since(started).Seconds(), l.ledger)
		if config := tf.Run(t, "output", "-raw", "worker"); strings.Contains(config, `"name"`) {
			worker.restart(t, config)
		} else {
			worker.stop(t)
		}
		if i == 0 {
			stop, began = l.startPublishing(t), time.Now()
			for _, c := range consumers {
				c.start(t)
			}
		}
		l.switchTo(t, consumers, step.after)
		l.awaitMore(t, 4*perSecond)
		for _, name := range []string{"a", "b"} {
			if step.has(name) {
				l.takeFailed(t, name+".failed")
			}
		}
	}
	stop()
	t.Logf("%.0f messages a second", float64(l.ledger.sent())/time.Since(began).Seconds())
	l.drain(t)
	worker.stop(t)
	l.requireNothingLost(t)
	for id, why := range l.ledger.failed {
		t.Errorf("%s is in a failed queue: %s", id, why)
	}
}

// switchTo gives the consumers another setting, one after the other, as a deployment does. What they rejected before one
// that holds has left the queue then.
func (l *load) switchTo(t *testing.T, consumers []*thirdTimer, to setting) {
	t.Helper()
	changed := false
	for _, c := range consumers {
		if c.setting.Swap(int32(to)) != int32(to) {
			l.awaitMore(t, perSecond)
			changed = true
		}
	}
	if !changed || to != hold {
		return
	}
	l.awaitMore(t, 5*perSecond) // brokers count every five seconds
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
	for {
		d, ok := l.Get(t, queue)
		if !ok {
			return
		}
		reason, ours := d.Headers["dead-letter-reason"].(string)
		if !ours {
			reason, _ = d.Headers["x-last-death-reason"].(string)
		}
		l.ledger.with(func() { l.ledger.failed[d.MessageId] = append(l.ledger.failed[d.MessageId], queue+" "+reason) })
	}
}
