//go:build chaos

package chaos

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
)

const (
	delayedPerSecond = 250
	// longShare of the messages wait for longer than the others.
	longShare = 0.02

	// Headers of the application: what a message was published for.
	headerDue, headerAsked, headerQueue = "chaos-due", "chaos-asked", "chaos-queue"
)

//nolint:paralleltest // the faults are for this test alone
func TestDelayedChaosLosesNothing(t *testing.T) {
	messages, faults := 50_000, 30
	d := &delayedUse{application: newApplication(t), usual: 20 * time.Second}
	if testing.Short() {
		messages, faults, d.usual = 6_000, 12, 6*time.Second
	}
	c := newChaosWith(t, d.application, d, "worker 1", "worker 2")
	if testing.Short() {
		c.longestStall = 6 * time.Second
	}
	d.bind(t)
	c.losesNothing(t, delayedPerSecond, messages, faults)
	d.report(t)
	c.checkTerraform(t)
	c.checkRetired(t)
}

// delayedUse is a delayed exchange, and applications that publish to it.
type delayedUse struct {
	*application

	// usual is the longest delay of nearly all messages.
	usual time.Duration
	turn  int

	mu sync.Mutex
	// early, astray and refused are ids of messages that were delivered too early, to the wrong queue, or not at all.
	early, astray, refused []string
	tooLong                int
	late                   []time.Duration
}

// turns are the longest delay, in multiples of the usual one, and the precision.
var turns = []struct {
	longest   float64
	precision string
}{{3, "250ms"}, {1.5, "250ms"}, {3, "500ms"}, {6, "500ms"}, {1.5, "1s"}, {3, "200ms"}}

// shortestMax is the shortest of the longest delays.
func (u *delayedUse) shortestMax() time.Duration { return u.times(1.5) }

func (u *delayedUse) hcl() string {
	return fmt.Sprintf(`
resource "rabbitmq_delayed_exchange" "chaos" {
  name      = "chaos"
  vhost     = %q
  max_delay = %q
  precision = %q
}

output "worker" { value = jsonencode({ delayed_exchanges = [rabbitmq_delayed_exchange.chaos.worker] }) }
output "retired" { value = jsonencode(keys(rabbitmq_delayed_exchange.chaos.retired_levels)) }
`, u.Vhost, u.longest(), turns[u.turn].precision)
}

func (u *delayedUse) longest() time.Duration { return u.times(turns[u.turn].longest) }

func (u *delayedUse) times(factor float64) time.Duration {
	return time.Duration(factor * float64(u.usual))
}

func (u *delayedUse) next() string {
	u.turn = (u.turn + 1) % len(turns)
	return fmt.Sprintf("delays up to %s in steps of %s", u.longest(), turns[u.turn].precision)
}

func (u *delayedUse) vital() []string { return []string{`\.inbox$`, `\.\d+$`, `^[a-z]+$`} }

func (u *delayedUse) operations(*chaos) []fault { return nil }

// bind binds each work queue by keys of its own.
func (u *delayedUse) bind(t *testing.T) {
	t.Helper()
	for _, queue := range workQueues {
		path := u.Path("bindings", "e", "chaos.deliver", "q", queue)
		u.Call(t, http.MethodPost, path, map[string]any{"routing_key": queue + ".#"}, nil)
	}
}

func (u *delayedUse) message(id string, count int) (exchange, key string, m amqp.Publishing) {
	queue, delay := workQueues[count%len(workQueues)], u.delay(id)
	return "chaos", queue + "." + id, amqp.Publishing{
		MessageId: id, DeliveryMode: amqp.Persistent, Body: []byte(id),
		Headers: amqp.Table{
			delaying.HeaderDelay: delay.Milliseconds(), headerAsked: delay.Milliseconds(),
			headerDue: time.Now().Add(delay).UnixNano(), headerQueue: queue,
		},
	}
}

// delay is that of a message, in whole milliseconds. Of the long ones, some are too long for the shortest turn.
func (u *delayedUse) delay(id string) time.Duration {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, id)
	rng := rand.New(rand.NewPCG(*seed, hash.Sum64()))
	from, to := time.Duration(0), u.usual
	if rng.Float64() < longShare {
		from, to = u.usual, u.usual*5/2
	}
	return (from + time.Duration(rng.Int64N(int64(to-from)))).Truncate(time.Millisecond)
}

func (u *delayedUse) handle(queue string, d amqp.Delivery) {
	due, _ := d.Headers[headerDue].(int64)
	late := time.Since(time.Unix(0, due))
	u.ledger.deliver(d.MessageId, queue, late, d.Redelivered)
	u.mu.Lock()
	defer u.mu.Unlock()
	if late < 0 {
		u.early = append(u.early, d.MessageId)
	}
	if d.Headers[headerQueue] != queue {
		u.astray = append(u.astray, d.MessageId)
	}
	u.late = append(u.late, late)
	_ = d.Ack(false)
}

func (u *delayedUse) parking() string { return delayed.Names("chaos").UnroutedQueue() }

// collect takes what was refused. Only delays that are too long at times may be.
func (u *delayedUse) collect(d amqp.Delivery) {
	reason, _ := d.Headers[deadletter.HeaderDeadLetterReason].(string)
	asked, _ := d.Headers[headerAsked].(int64)
	u.ledger.park(d.MessageId, reason)
	u.mu.Lock()
	defer u.mu.Unlock()
	if reason == delaying.ReasonTooLong && asked > u.shortestMax().Milliseconds() {
		u.tooLong++
	} else {
		u.refused = append(u.refused, d.MessageId)
	}
}

// report checks what the balance does not know.
func (u *delayedUse) report(t *testing.T) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	slices.Sort(u.late)
	if n := len(u.late); n > 0 {
		t.Logf("late by %s at least, by %s at the median, 99 %% by %s at most, all by %s; early %d, to a wrong queue %d, refused %d and rightly %d",
			u.late[0], u.late[n/2], u.late[n*99/100], u.late[n-1], len(u.early), len(u.astray), len(u.refused), u.tooLong)
	}
	for what, ids := range map[string][]string{"early": u.early, "to a wrong queue": u.astray, "refused": u.refused} {
		for _, id := range ids[:min(len(ids), 20)] {
			t.Errorf("%s: %s", what, u.ledger.history(id))
		}
	}
}

// checkRetired finds levels that stay although nothing is in them.
func (c *chaos) checkRetired(t *testing.T) {
	t.Helper()
	output, err := c.tf.Try(t.Context(), "output", "-raw", "retired")
	require.NoError(t, err)
	var retired []string
	if err := json.Unmarshal([]byte(output), &retired); err != nil || len(retired) > 0 {
		t.Errorf("levels are still retired: %v %v", retired, err)
	}
}
