//go:build chaos

package chaos

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

var seed = flag.Uint64("seed", 0, "repeats the faults of a run; 0 for a new seed")

const (
	perSecond = 350
	// drainTime is how long what is left may take: a broker tries again what it could not deliver to
	// a queue after up to six minutes, or 20 s with the settings that the cluster runs with.
	drainTime = 7 * time.Minute
	// quietTime without any message on the broker proves that what has not ended is lost.
	quietTime = 45 * time.Second
)

// chaos is everything that can go wrong with a subject and its applications.
type chaos struct {
	*application
	subject

	t        *testing.T
	log      *faultLog
	tf       *terraformtest.CLI
	replicas []*replica

	// config is the workers'; only operations change it.
	config string

	longestStall time.Duration
}

// newChaos makes a pipeline and its workers.
func newChaos(t *testing.T, replicas ...string) *chaos {
	t.Helper()
	a := newApplication(t)
	return newChaosWith(t, a, &pipelineUse{application: a}, replicas...)
}

func newChaosWith(t *testing.T, a *application, s subject, replicas ...string) *chaos {
	t.Helper()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	c := &chaos{t: t, application: a, subject: s, longestStall: 35 * time.Second}
	c.tf = terraformtest.New(t, terraformtest.BuildProvider(t), "RABBITMQ_ENDPOINT="+c.Endpoint)
	require.NoError(t, c.apply())
	for _, name := range replicas {
		r := c.newReplica(t, name)
		require.NoError(t, r.configure(c.config))
		require.NoError(t, r.start(t))
		r.log.Await(t, "msg=consuming", 1)
		c.replicas = append(c.replicas, r)
	}
	c.log = &faultLog{t: t, began: c.ledger.began, kind: map[string]int{}}
	return c
}

//nolint:paralleltest // the faults are for this test alone
func TestChaosLosesNothing(t *testing.T) {
	messages, faults := 100_000, 40
	c := newChaos(t, "worker 1", "worker 2")
	if testing.Short() {
		messages, faults, c.longestStall = 8_000, 10, 6*time.Second
	}
	c.losesNothing(t, perSecond, messages, faults)
	c.checkTerraform(t)
}

// losesNothing has everything go wrong while messages are published at a rate, and accounts for them.
func (c *chaos) losesNothing(t *testing.T, perSecond, messages, faults int) {
	t.Helper()
	stopConsumers, stopProducers := c.startConsumers(t), c.startProducers(t, perSecond)
	c.rage(t, messages, faults)
	stopProducers()
	c.drain(t, quietTime, drainTime)
	stopConsumers()
	c.report(t)
}

// rage runs all tracks until so much has been published and so much has gone wrong.
func (c *chaos) rage(t *testing.T, messages, faults int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	tracks, ctx := errgroup.WithContext(ctx)
	for i, tr := range []track{
		{"nodes", c.nodeFaults(), 3 * time.Second, 7 * time.Second},
		{"workers", c.workerFaults(), 4 * time.Second, 10 * time.Second},
		{"network", c.networkFaults(), 3 * time.Second, 7 * time.Second},
		{"operations", c.operationFaults(), 3 * time.Second, 7 * time.Second},
	} {
		rng := rand.New(rand.NewPCG(*seed, uint64(i)))
		tracks.Go(func() error { return tr.run(ctx.Done(), rng) })
	}
	for pause(ctx.Done(), 100*time.Millisecond) {
		if sent, _ := c.ledger.sent(); sent >= messages && c.log.count() >= faults {
			break
		}
	}
	cancel()
	if err := tracks.Wait(); err != nil {
		t.Errorf("%v\n%s", err, c.ledger.balance())
	}
	t.Logf("%d faults in %s: %v", c.log.count(), time.Since(c.log.began).Round(time.Second), c.log.kind)
}

// report prints the balance, and the history of what is lost.
func (c *chaos) report(t *testing.T) {
	t.Helper()
	for _, r := range c.replicas {
		if err := r.stop(t); err != nil {
			t.Error(err)
		}
		t.Logf("%s: sessions %d, of which ended abnormally %d; blocked by the broker %d times; panics %d", r,
			r.log.Count("msg=consuming"), r.log.Count("session ended"), r.log.Count("the broker accepts no messages"), r.log.Count("internal error (panic)"))
	}
	b := c.ledger.balance()
	t.Logf("seed %d: %s; the longest pause without a message that came back: %.1f s, from %s on",
		*seed, b, c.ledger.pause.Seconds(), since(c.ledger.began, c.ledger.pauseAt))
	for _, id := range b.lost[:min(len(b.lost), 20)] {
		t.Errorf("lost: %s", c.history(id))
	}
	if len(b.lost) > 20 {
		t.Logf("all that is lost: %v", b.lost)
	}
}

func (c *chaos) history(id string) string {
	text := c.ledger.history(id)
	for _, r := range c.replicas {
		for _, line := range r.mentions(id) {
			text += "\n  " + line
		}
	}
	return text
}

// checkTerraform finds whether the provider still knows what there is. A retired queue goes with the
// apply after the one that found it drained, after which nothing is left to change; right after the
// last fault the figures of a queue may be too high, too old or missing for that.
func (c *chaos) checkTerraform(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		require.NoError(t, c.apply())
		_, err := c.tf.Try(t.Context(), "plan", "-detailed-exitcode", "-input=false", "-no-color")
		return err
	})
}

// subject is the resource that must lose nothing, with what its applications do.
type subject interface {
	// hcl is its configuration, with the sidecar's as the output `worker`.
	hcl() string
	// next has hcl be another configuration, and describes it.
	next() string
	// vital are patterns of the queues whose leaders die.
	vital() []string
	// operations are what else people do with it.
	operations(c *chaos) []fault

	// message is what a producer publishes under an id, the count of its messages.
	message(id string, count int) (exchange, key string, m amqp.Publishing)
	// handle gets what comes to a work queue, collect what comes to the queue where messages are parked. They have nobody to
	// tell about an error: the connection is lost then, and the message comes again.
	handle(queue string, d amqp.Delivery)
	collect(d amqp.Delivery)
	parking() string
}

// startConsumers returns what ends them.
func (c *chaos) startConsumers(t *testing.T) (stop func()) {
	t.Helper()
	return c.start(t, c.consumers, c.consume, c.consume)
}

// startProducers returns what ends them, after the last confirm.
func (c *chaos) startProducers(t *testing.T, perSecond int) (stop func()) {
	t.Helper()
	return c.start(t, c.producers, c.produce("a", perSecond/2), c.produce("b", perSecond/2))
}

// startCollecting takes what is parked, and returns what ends that.
func (c *chaos) startCollecting(t *testing.T) (stop func()) {
	t.Helper()
	return c.start(t, c.consumers, c.collectParked)
}

func (c *chaos) start(t *testing.T, p *proxy, clients ...func(context.Context, *amqp.Connection) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, client := range clients {
		running.Go(func() { c.always(ctx, p, client) })
	}
	return func() { cancel(); running.Wait() }
}

// drain waits until every message has ended, or the broker has held nothing for so long that nothing
// can come any more.
func (c *chaos) drain(t *testing.T, quiet, atMost time.Duration) {
	t.Helper()
	defer c.startCollecting(t)()
	began := time.Now()
	emptySince := began
	for {
		held, err := c.holding(t.Context())
		if err != nil || len(held) > 0 {
			emptySince = time.Now()
		}
		empty := time.Since(emptySince)
		if _, left := c.ledger.sent(); left == 0 && empty > time.Second || empty > quiet {
			t.Logf("drained in %s", time.Since(began).Round(time.Second))
			return
		}
		if time.Since(began) > atMost {
			t.Errorf("after %s there are still messages: %v %v", atMost, held, err)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// rejectedShare of the attempts fails.
const rejectedShare = 0.3

// schedules are the delays that take turns. The queue of a delay that is left out retires with the first
// change, and goes with the second.
var schedules = []string{`"500ms", "1s", "2s"`, `"1s", "2s"`, `"1s", "2s", "3s"`, `"0s", "500ms", "2s", "3s"`}

// pipelineUse is a retry pipeline, and applications whose attempts fail at times.
type pipelineUse struct {
	*application

	schedule int
}

func (p *pipelineUse) hcl() string {
	return fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "chaos" {
  name        = "chaos"
  vhost       = %q
  delays      = [%s]
  work_queues = { %s }
}

output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.chaos.worker] }) }
`, p.Vhost, schedules[p.schedule], strings.Join(workQueues, " = {}, ")+" = {}")
}

func (p *pipelineUse) next() string {
	p.schedule = (p.schedule + 1) % len(schedules)
	return "the schedule " + schedules[p.schedule]
}

func (p *pipelineUse) vital() []string { return []string{`^chaos\.inbox$`, `^[a-z]+$`} }

// operations has the workers use another order of the delays.
func (p *pipelineUse) operations(c *chaos) []fault {
	return []fault{func(<-chan struct{}, *rand.Rand) error {
		var config struct {
			Pipelines []map[string]any `json:"pipelines"`
		}
		if err := json.Unmarshal([]byte(c.config), &config); err != nil {
			return err
		}
		slices.Reverse(config.Pipelines[0]["delays"].([]any))
		changed, err := json.Marshal(config)
		if err != nil {
			return err
		}
		c.log.strike("reload", "another order of the delays")
		return c.follow(string(changed))
	}}
}

func (p *pipelineUse) message(id string, count int) (exchange, key string, m amqp.Publishing) {
	return "", workQueues[count%len(workQueues)], amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Body: []byte(id)}
}

// handle processes or rejects a message.
func (p *pipelineUse) handle(queue string, d amqp.Delivery) {
	count, _ := d.Headers[deadletter.HeaderCount].(int64)
	if p.rejects(d.MessageId, count) {
		p.ledger.reject(d.MessageId, count, queue)
		_ = d.Reject(false)
		return
	}
	p.ledger.process(d.MessageId, count, d.Redelivered)
	_ = d.Ack(false)
}

// rejects decides about an attempt in the same way each time that it is delivered.
func (p *pipelineUse) rejects(id string, count int64) bool {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s %d", id, count)
	return rand.New(rand.NewPCG(*seed, hash.Sum64())).Float64() < rejectedShare
}

func (p *pipelineUse) parking() string { return "chaos.failed" }

func (p *pipelineUse) collect(d amqp.Delivery) {
	reason, _ := d.Headers[deadletter.HeaderDeadLetterReason].(string)
	p.ledger.park(d.MessageId, reason)
}
