package transfer_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// proxy is between the run and the broker, on the connections for one purpose.
type proxy struct {
	// muted says that no data reaches the broker.
	muted atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

func (x *proxy) serve(client, broker net.Conn) {
	x.mu.Lock()
	x.conns = append(x.conns, client)
	x.mu.Unlock()
	go func() {
		defer func() { _ = broker.Close() }()
		_, _ = io.Copy(unlessMuted{x, broker}, client)
	}()
	_, _ = io.Copy(client, broker)
}

type unlessMuted struct {
	*proxy
	io.Writer
}

func (u unlessMuted) Write(p []byte) (int, error) {
	if u.muted.Load() {
		return len(p), nil
	}
	return u.Writer.Write(p)
}

// cut closes the current connections. Later ones are not muted.
func (x *proxy) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, conn := range x.conns {
		_ = conn.Close()
	}
	x.conns = nil
}

// block tells the run that the broker accepts no messages, or accepts them again.
func (x *proxy) block(active bool) {
	frame := "\x01\x00\x00\x00\x00\x00\x09\x00\x0a\x00\x3c\x04test\xce"
	if !active {
		frame = "\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x3d\xce"
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, conn := range x.conns {
		_, _ = conn.Write([]byte(frame))
	}
}

// through routes connections for a purpose through a proxy.
func (b *bench) through(t *testing.T, x *proxy, purpose string) {
	t.Helper()
	direct, proxied := b.Open, *b
	proxied.uri = brokertest.Between(t, b.uri, x.serve)
	b.Open = func(ctx context.Context, p string) (amqpconn.Raw, error) {
		if p == purpose {
			return proxied.open(ctx, p)
		}
		return direct(ctx, p)
	}
}

// A cut connection loses acknowledgements, but no message. The run reports how many messages can be in both queues.
func TestCut(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		meant, rest := numbered("meant", 1000), numbered("rest", 300)
		b.fill(t, append(rest, meant...)...)
		result, err := b.replayCut(t, transfer.Job{Decide: only("meant")}, 400)
		assert.Truef(t, err != nil && result.Unverified && result.MostDoubled() == result.Confirmed, "result %+v, %v", result, err)
		then, err := b.replay(t.Context(), t, transfer.Job{Decide: only("meant")})
		require.NoError(t, err)
		arrived := b.drain(t, target)
		doubled := len(arrived) - len(meant)
		assert.Truef(t, len(slices.Compact(arrived)) == len(meant) && doubled <= result.MostDoubled() &&
			doubled == result.Confirmed+then.Confirmed-len(meant), "%d arrived twice of %d: %+v, then %+v", doubled, len(meant), result, then)
		b.expect(t, source, rest)
	})
}

// If the connection is cut while acknowledgements are awaited, they can be lost.
func TestCutInTheEnd(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		meant, rest := numbered("meant", 100), numbered("rest", 50)
		b.fill(t, append(rest, meant...)...)
		x := &proxy{}
		b.through(t, x, "consume")
		result, err := transfer.Run(t.Context(), b.Queue, transfer.Job{
			Publishes: true, Decide: only("meant"),
			Progress: func(p transfer.Progress) {
				if p.Phase == transfer.Finishing {
					x.cut()
				}
			},
		})
		assert.Truef(t, err != nil && result.Confirmed == len(meant) && result.MostDoubled() == len(meant), "%+v, %v", result, err)
		if got := b.drain(t, source); len(slices.Compact(got)) < len(rest) {
			t.Errorf("%d are left", len(got))
		}
		b.expect(t, target, meant)
	})
}

// replayCut loses all acknowledgements, and then the connection, after this many confirms.
func (b *bench) replayCut(t *testing.T, job transfer.Job, after int) (transfer.Result, error) {
	t.Helper()
	x, n := &proxy{}, 0
	b.through(t, x, "consume")
	decide := job.Decide
	job.Publishes = true
	job.Decide = func(e *failed.Entry) transfer.Choice {
		x.muted.Store(n < after)
		return decide(e)
	}
	job.Done = func(failed.Publishing, bool) {
		if n++; n == after {
			x.cut()
			x.muted.Store(false)
		}
	}
	return transfer.Run(t.Context(), b.Queue, job)
}

// While the broker accepts no messages, a run waits and reports that. It continues afterwards.
func TestAlarm(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		b.fill(t, numbered("m", 100)...)
		x := &proxy{}
		b.through(t, x, "publish")
		said := make(chan string, 100)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		b.look(ctx, t)
		go func() {
			_, err := transfer.Run(ctx, b.Queue, transfer.Job{Publishes: true, Decide: move, Rate: 20, Progress: func(p transfer.Progress) {
				if p.Blocked != "" {
					said <- p.Blocked
				}
				if p.Blocked == "" && p.Confirmed > 0 && p.Confirmed < 50 {
					x.block(true)
				}
			}})
			ended <- err
		}()
		for range 2 { // it waits for longer than a moment
			assert.Equal(t, "test", brokertest.Receive(t, said))
		}
		cancel()
		require.NoError(t, brokertest.Receive(t, ended))
		assert.Equal(t, 100, len(b.drain(t, source))+len(b.drain(t, target)))
	})
}

// envChild is the variable with the vhost for the process to kill.
const envChild = "PASS_TEST_CHILD"

// TestChild is the process to kill.
func TestChild(t *testing.T) {
	t.Parallel()
	vhost := os.Getenv(envChild)
	if vhost == "" {
		t.Skip("runs in a process of its own") //nolint:forbidigo // not of the broker
	}
	b := benchIn(vhost)
	_, err := b.replay(t.Context(), t, transfer.Job{Decide: move})
	require.NoError(t, err)
}

// benchIn is the bench of the process that started this one.
func benchIn(vhost string) bench {
	b := bench{Broker: &brokertest.Broker{Vhost: vhost, URI: os.Getenv("RABBITMQ_URI")}}
	b.uri = b.URI
	b.Queue = transfer.Queue{Name: source, Open: b.open}
	return b
}

// A killed process loses no message, and duplicates no more messages than it had in flight.
func TestKill(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		killed(t, b, 4000)
	})
}

func killed(t *testing.T, b bench, n int) {
	t.Helper()
	bodies := numbered("m", n)
	b.fill(t, bodies...)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	child.Env = append(os.Environ(), envChild+"="+b.Vhost)
	require.NoError(t, child.Start())
	// Kill the process halfway.
	work := transfer.Queue{Name: target, Open: b.open}
	brokertest.Eventually(t, func() error {
		count, err := work.Count(t.Context())
		if err == nil && count.Ready < n/4 {
			return errTooFew
		}
		return err
	})
	_ = child.Process.Kill()
	_ = child.Wait()
	_, err := b.replay(t.Context(), t, transfer.Job{Decide: move})
	require.NoError(t, err)
	got := map[string]int{}
	for _, body := range b.drain(t, target) {
		got[body]++
	}
	doubled := 0
	for _, times := range got {
		doubled += times - 1
	}
	assert.Truef(t, len(got) == n && doubled <= transfer.MayDouble, "%d of %d messages arrived, %d are doubled", len(got), n, doubled)
	t.Logf("%d of %d doubled", doubled, n)
	b.expect(t, source, nil)
}

var errTooFew = errors.New("too few messages have moved")

// peak is the largest memory that this process has used, in MiB.
func peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err) //nolint:forbidigo // not of the broker
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	require.NoError(t, err)
	return kib >> 10
}
