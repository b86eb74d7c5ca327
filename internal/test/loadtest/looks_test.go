//go:build load

package loadtest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// The whole run has 100000 messages due over 2h.
var (
	looksMessages = flag.Int("looks-messages", 20_000, "messages that wait while operators look at them")
	looksOver     = flag.Duration("looks-over", 4*time.Minute, "the longest delay of these messages")
)

const (
	looksKills, looksFreezes = 50, 5
	looksShortest            = 15 * time.Second
	// allowance is how much later a message can be than without looks, besides the looks that met it.
	allowance = 500 * time.Millisecond
)

// Two operators look at what waits, and are killed and frozen. The sidecar is killed, and precision and max_delay change. No message is
// lost, doubled or early. Beside it is a vhost without looks. Only the looks that met a message can make it later than there.
func TestLooksAtWhatWaitsChangeNothing(t *testing.T) {
	t.Parallel()
	messages, over := *looksMessages, *looksOver
	if testing.Short() {
		messages, over = 3_000, time.Minute
	}
	looked, alone := newWaiting(t, over), newWaiting(t, over)
	looked.messages = messages
	var sides sync.WaitGroup
	for _, w := range []*waiting{looked, alone} {
		w.shape(t, over, "100ms")
		sides.Go(func() { w.publish(t, 0, messages, looksShortest, over) })
	}
	sides.Wait()
	binary := terraformtest.BuildSidecar(t)
	ctx, end := context.WithCancel(t.Context())
	watching := looked.watch(ctx, t)
	operators := looked.operate(ctx, binary)
	pause(t, over/4)
	for _, w := range []*waiting{looked, alone} {
		w.process.Kill()
		w.process.Wait(t)
		w.shape(t, 2*over, "200ms")
		sides.Go(func() { w.publish(t, messages, messages/10, looksShortest, over/2) })
	}
	sides.Wait()
	alone.await(t, messages+messages/10)
	end()
	operators.Wait()
	watching.Wait()
	looked.importAll(t, binary)
	looked.await(t, messages+messages/10)
	looked.requireCancelled(t)
	t.Logf("%d messages were to be moved, of which %d came twice; %d are undecided after kills", len(looked.moved), len(looked.doubled), len(looked.undecided))

	usual := alone.latest(t, nil)
	t.Logf("%d looks, %d of them killed while they held messages, %d frozen; %d holds, the longest %s; without looks late by %s at most, with looks by %s",
		looked.looks.Load(), looked.killed.Load(), looked.frozen.Load(), len(looked.holds), looked.longest(), usual, looked.latest(t, nil))
	if !testing.Short() { // other tests make both sides late
		require.LessOrEqual(t, looked.latest(t, looked.holds), usual+allowance, "late by more than the looks that met it")
	}
	require.NotZero(t, looked.killed.Load())
}

// waiting is a delayed exchange with a sidecar, and a consumer that notes when messages arrive.
type waiting struct {
	*brokertest.Broker
	exchange delayed.Exchange
	folder   string
	process  *sidecartest.Process
	// over is the longest delay, over which the looks and kills are spread.
	over      time.Duration
	messages  int
	disturbed time.Time

	looks, killed, frozen atomic.Int64
	operators             [2]atomic.Pointer[exec.Cmd]
	// acting says that an operator's command takes messages out, which takes longer than a look.
	acting [2]atomic.Bool

	mu       sync.Mutex
	arrivals map[string]arrival
	doubled  []string
	// moved are the messages to deliver or reschedule. One that was moved when the command was killed can come twice.
	moved map[string]bool
	// files are those of cancellations. undecided are the messages of which a kill left open whether the exchange has them.
	files     []cancelFile
	undecided map[string]bool
	holds     []holding
	long      []delayed.Level
}

type arrival struct {
	due, at time.Time
	// unit and bits are the way through the levels.
	unit time.Duration
	bits map[int]bool
}

// holding is a time in which a look held messages of a level, at most.
type holding struct {
	level      delayed.Level
	begin, end time.Time
}

func newWaiting(t *testing.T, over time.Duration) *waiting {
	t.Helper()
	w := &waiting{Broker: brokertest.New(t), folder: t.TempDir(), over: over, arrivals: map[string]arrival{}, moved: map[string]bool{}, undecided: map[string]bool{}}
	w.DeclareQueue(t, "due", "quorum", nil)
	_, deliveries := w.Consume(t, "due", 1000)
	go func() {
		for d := range deliveries {
			w.arrive(d)
		}
	}()
	return w
}

func (w *waiting) arrive(d amqp.Delivery) {
	now := time.Now()
	due, _ := d.Headers[delaying.HeaderDueAt].(int64)
	a := arrival{due: time.UnixMilli(due), at: now, bits: map[int]bool{}}
	for bit := range delayed.MostLevels {
		if waits, _ := d.Headers[delayed.BitKey(bit)].(bool); waits {
			a.bits[bit] = true
		}
	}
	a.unit, _ = time.ParseDuration(d.Headers["unit"].(string))
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, twice := w.arrivals[d.MessageId]; twice {
		w.doubled = append(w.doubled, d.MessageId)
	}
	w.arrivals[d.MessageId] = a
	_ = d.Ack(false)
}

// shape makes the exchange wait for up to this delay with this precision, as the provider does, and starts a sidecar. Old levels stay.
func (w *waiting) shape(t *testing.T, longest time.Duration, precision string) {
	t.Helper()
	unit, err := pipeline.ParseDelay(precision)
	require.NoError(t, err)
	w.exchange = delayed.Exchange{
		Name: "events", Vhost: w.Vhost, Type: "fanout", PolicyPriority: delayed.DefaultPolicyPriority,
		MaxDelay:  pipeline.Delay{Wait: longest, Spelling: pipeline.FormatDelay(longest)},
		Precision: pipeline.Delay{Wait: unit, Spelling: precision},
	}
	w.Create(t, w.exchange.Expand())
	w.mu.Lock()
	for _, l := range w.exchange.Levels() {
		if l.Wait() >= 10*time.Second {
			w.long = append(w.long, l)
		}
	}
	w.mu.Unlock()
	require.NoError(t, w.Channel(t).QueueBind("due", "", "events.deliver", false, nil))
	config, err := json.Marshal(map[string]any{"delayed_exchanges": []delayed.Worker{w.exchange.Worker()}})
	require.NoError(t, err)
	file := filepath.Join(w.folder, "worker.json")
	require.NoError(t, os.WriteFile(file, config, 0o600))
	w.process = sidecartest.Start(t, []string{"RABBITMQ_URI=" + w.URI}, "--config", file)
}

// publish publishes messages with delays between two bounds, and returns once the sidecar has taken them.
func (w *waiting) publish(t *testing.T, from, n int, shortest, longest time.Duration) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(from))) // both sides have the same delays
	ch, err := w.Dial(t).Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		t.Error(err)
		return
	}
	var last *amqp.DeferredConfirmation
	for i := range n {
		delay := shortest + time.Duration(rng.Int64N(int64(longest-shortest)))
		last, err = ch.PublishWithDeferredConfirm("events", "key", true, false, amqp.Publishing{
			MessageId: fmt.Sprint(from + i), DeliveryMode: amqp.Persistent, Body: []byte("body"),
			Headers: amqp.Table{delaying.HeaderDelay: delay.Milliseconds(), "unit": w.exchange.Precision.Wait.String()},
		})
		if err != nil {
			t.Error(err)
			return
		}
		if i%1000 == 999 {
			last.Wait()
		}
	}
	last.Wait()
	brokertest.Eventually(t, func() error {
		q, err := w.Channel(t).QueueDeclarePassive("events.delay.inbox", true, false, false, false, nil)
		if err == nil && q.Messages > 0 {
			err = fmt.Errorf("the inbox has %d messages", q.Messages)
		}
		return err
	})
}

// operate starts two operators, which look again and again.
func (w *waiting) operate(ctx context.Context, binary string) *sync.WaitGroup {
	var operators sync.WaitGroup
	for i := range w.operators {
		operators.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				args := append(w.command(n, i), "--vhost", w.Vhost)
				w.acting[i].Store(slices.Contains(args, "--yes"))
				look := exec.Command(binary, args...) //nolint:noctx // it is killed below
				look.Env = append(os.Environ(), "RABBITMQ_URI="+w.URI, "RABBITMQ_ENDPOINT="+w.Endpoint)
				if look.Start() == nil {
					w.operators[i].Store(look)
					_ = look.Wait()
					w.cancelEnded(args, look.ProcessState.ExitCode())
					w.looks.Add(1)
				}
				w.operators[i].Store(nil)
				time.Sleep(rand.N(w.over / 300)) // a look reads thousands of messages
			}
		})
	}
	return &operators
}

// command is what an operator does next: it looks, or acts on some messages.
func (w *waiting) command(n, operator int) []string {
	switch n % 4 {
	case 1:
		return []string{"delayed", "show", "events", fmt.Sprint(n)}
	case 2:
		w.mu.Lock()
		defer w.mu.Unlock()
		var chosen []string
		act := []string{"cancel", "deliver", "reschedule"}[n/4%3]
		for range 20 {
			id := fmt.Sprint(rand.IntN(w.messages))
			chosen = append(chosen, "--message-id", id)
			if act != "cancel" {
				w.moved[id] = true
			}
		}
		switch act {
		case "cancel":
			w.files = append(w.files, cancelFile{name: filepath.Join(w.folder, fmt.Sprintf("%d-%d", operator, n))})
			chosen = append(chosen, "--export", w.files[len(w.files)-1].name)
		case "reschedule":
			chosen = append(chosen, "--by", "5s")
		}
		return append([]string{"delayed", act, "events", "--yes"}, chosen...)
	}
	return []string{"delayed", "list", "events"}
}

// cancelFile is the file of a cancellation. Those that were reported as cancelled do not come between its end and the import.
type cancelFile struct {
	name            string
	ended, imported time.Time
}

func (w *waiting) cancelEnded(args []string, code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.files {
		if code >= 0 && slices.Contains(args, w.files[i].name) {
			w.files[i].ended = time.Now()
		}
	}
}

// importAll imports all files of cancellations.
func (w *waiting) importAll(t *testing.T, binary string) {
	t.Helper()
	for i := range w.files {
		f := &w.files[i]
		if _, err := os.Stat(f.name); err != nil {
			continue // the command found no message, or was killed before it had created the file
		}
		f.imported = time.Now()
		restore := exec.CommandContext(t.Context(), binary, "delayed", "import", "events", f.name, "--yes", "--vhost", w.Vhost)
		restore.Env = append(os.Environ(), "RABBITMQ_URI="+w.URI, "RABBITMQ_ENDPOINT="+w.Endpoint)
		printed, err := restore.CombinedOutput()
		states := w.states(t, *f)
		for id, state := range states {
			if state == "open" || state == "undo" {
				w.undecided[id] = true
			}
		}
		left := slices.Collect(maps.Values(states))
		require.True(t, err == nil || slices.Contains(left, "open") || !slices.Contains(left, "done"), string(printed))
	}
}

// states are the states of a file's messages. A command that was killed while it wrote the file has taken nothing out.
func (w *waiting) states(t *testing.T, f cancelFile) map[string]string {
	t.Helper()
	text, err := os.ReadFile(f.name)
	require.NoError(t, err)
	states := map[string]string{}
	for line := range bytes.Lines(text) {
		var m struct {
			Cancel     string
			Properties struct {
				MessageID string `json:"message_id"`
			}
		}
		if json.Unmarshal(line, &m) == nil {
			states[m.Properties.MessageID] = m.Cancel
		}
	}
	return states
}

// requireCancelled requires that what was reported as cancelled came only after its import.
func (w *waiting) requireCancelled(t *testing.T) {
	t.Helper()
	back := 0
	for _, f := range w.files {
		if f.imported.IsZero() {
			continue
		}
		for id, state := range w.states(t, f) {
			if state != "back" {
				continue
			}
			back++
			a := w.arrivals[id]
			cancelled := !f.ended.IsZero() && a.at.After(f.ended) && a.at.Before(f.imported)
			require.False(t, cancelled, "message %s came although it was cancelled", id)
			a.due = latestOf(a.due, f.imported) // it cannot come before
			w.arrivals[id] = a
		}
	}
	t.Logf("%d cancelled messages were imported", back)
}

// watch notes the holds, and kills or freezes operators during some of them.
func (w *waiting) watch(ctx context.Context, t *testing.T) *sync.WaitGroup {
	t.Helper()
	ch, err := w.Dial(t).Channel()
	require.NoError(t, err)
	var watching sync.WaitGroup
	watching.Go(func() {
		ready, free, open := map[string]int{}, map[string]time.Time{}, map[string]*holding{}
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) { // a hold has no signal
			for _, l := range w.levels() {
				name := delayed.Names("events").Level(l)
				asked := time.Now()
				q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
				if err != nil {
					return
				}
				switch h := open[name]; {
				case q.Consumers > 0 && h == nil:
					open[name] = &holding{level: l, begin: free[name]}
					if q.Messages < ready[name] {
						w.disturb()
					}
				case q.Consumers == 0 && h != nil:
					h.end = time.Now()
					w.mu.Lock()
					w.holds = append(w.holds, *h)
					w.mu.Unlock()
					delete(open, name)
				}
				if q.Consumers == 0 {
					ready[name], free[name] = q.Messages, asked
				}
			}
		}
	})
	return &watching
}

// levels are the levels that are looked at, of both precisions.
func (w *waiting) levels() []delayed.Level {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.long)
}

// disturb kills both operators, one of which holds messages, or freezes them for 6 seconds.
func (w *waiting) disturb() {
	freezes := rand.IntN(5) == 0 && w.frozen.Load() < looksFreezes
	if time.Since(w.disturbed) < w.over/2/looksKills || !freezes && w.killed.Load() >= looksKills {
		return
	}
	w.disturbed = time.Now()
	for i := range w.operators {
		look := w.operators[i].Load()
		switch {
		case look == nil, w.acting[i].Load() && rand.IntN(5) > 0: // or none would end
		case freezes:
			_ = look.Process.Signal(syscall.SIGSTOP)
			time.AfterFunc(6*time.Second, func() { _ = look.Process.Kill() })
		default:
			_ = look.Process.Kill()
		}
	}
	if freezes {
		w.frozen.Add(1)
	} else {
		w.killed.Add(1)
	}
}

// await waits until all messages have arrived, and requires that none came twice or early.
func (w *waiting) await(t *testing.T, want int) {
	t.Helper()
	for before := -1; ; {
		w.mu.Lock()
		n := len(w.arrivals)
		for id := range w.undecided {
			if _, came := w.arrivals[id]; !came {
				n++
			}
		}
		doubled := slices.DeleteFunc(slices.Clone(w.doubled), func(id string) bool { return w.moved[id] || w.undecided[id] })
		w.mu.Unlock()
		require.Empty(t, doubled)
		if n == want {
			break
		}
		if time.Sleep(time.Second); n == before && w.allLate() {
			t.Fatalf("%d of %d messages arrived", n, want)
		}
		before = n
	}
	for id, a := range w.arrivals {
		require.False(t, a.at.Before(a.due), "message %s is early by %s", id, a.due.Sub(a.at))
	}
}

// allLate reports whether nothing has arrived for longer than messages can take.
func (w *waiting) allLate() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	var last time.Time
	for _, a := range w.arrivals {
		last = latestOf(last, a.at)
	}
	return time.Since(last) > w.exchange.MaxDelay.Wait
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// latest is how late a message was at most, without the holds that met it.
func (w *waiting) latest(t *testing.T, holds []holding) (most time.Duration) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, a := range w.arrivals {
		late := a.at.Sub(a.due)
		if excused := late - met(a, holds); excused > most {
			most = excused
			if most > 2*time.Second && holds != nil {
				t.Logf("message %s, due %s, late by %s, of which looks explain %s, bits %v of %s", id, a.due, late, met(a, holds), a.bits, a.unit)
			}
		}
	}
	return most
}

// met is how long looks held a message at the time when it had to leave a level.
func met(a arrival, holds []holding) (sum time.Duration) {
	leaves := a.due
	way := map[int]time.Time{}
	for bit := range delayed.MostLevels {
		if a.bits[bit] {
			way[bit] = leaves
			leaves = leaves.Add(-a.unit << bit)
		}
	}
	for bit := delayed.MostLevels - 1; bit >= 0; bit-- {
		left, waits := way[bit]
		if !waits {
			continue
		}
		for _, h := range holds {
			if at := left.Add(sum); h.level == (delayed.Level{Unit: a.unit, Bit: bit}) && !at.Before(h.begin) && at.Before(h.end) {
				sum += h.end.Sub(at)
			}
		}
	}
	return sum
}

func (w *waiting) longest() (longest time.Duration) {
	for _, h := range w.holds {
		longest = max(longest, h.end.Sub(h.begin))
	}
	return longest
}

func pause(t *testing.T, length time.Duration) {
	t.Helper()
	select {
	case <-time.After(length):
	case <-t.Context().Done():
	}
}
