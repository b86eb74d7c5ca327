//go:build load

package transfer_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, bench, int){"in company": company, "stop": interrupted, "kill": killed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types(t, func(t *testing.T, b bench) { test(t, b, 20_000) })
		})
	}
}

const envScan = "PASS_TEST_SCAN"

// TestScan runs in a separate process, whose memory is measured.
func TestScan(t *testing.T) {
	t.Parallel()
	vhost := os.Getenv(envScan)
	if vhost == "" {
		t.Skip("runs in a process of its own") //nolint:forbidigo // not of the broker
	}
	b := benchIn(vhost)
	began := time.Now()
	b.look(t.Context(), t)
	t.Logf("look: %s, %d MiB", time.Since(began), peak(t))
	result, err := transfer.Run(t.Context(), b.Queue, transfer.Job{Publishes: true, Decide: only("meant")})
	assert.Truef(t, err == nil && result.Confirmed == 10 && result.Seen == 200_000, "result %+v, %v", result, err)
	t.Logf("all: %s, %d MiB", time.Since(began), peak(t))
	assert.LessOrEqual(t, peak(t), 60, "MiB")
}

// A replay of ten messages out of 200,000 needs little memory, and the others are back afterwards.
func TestLoadMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t, "quorum")
	padding := strings.Repeat("x", 1000)
	for i := range 10 {
		bodies := numbered("rest", 19_999)
		for j := range bodies {
			bodies[j] += padding
		}
		b.fill(t, append(bodies, numbered("meant", 10)[i])...)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestScan$", "-test.v")
	child.Env = append(os.Environ(), envScan+"="+b.Vhost)
	output, err := child.CombinedOutput()
	t.Logf("%s", output)
	require.NoError(t, err)
	brokertest.Eventually(t, func() error {
		count, err := b.Count(t.Context())
		if err == nil && count.Ready != 199_990 {
			return errTooFew
		}
		return err
	})
}

// A run keeps its rate for five minutes although it must put back other messages meanwhile. This holds even on a broker that
// lets consumers hold messages for only two minutes.
func TestLoadRate(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		const rate, lasts, tolerance = 50, 5 * time.Minute, 0.05
		n := rate * int(lasts.Seconds())
		meant, rest := numbered("meant", n), numbered("rest", n/10)
		var bodies []string
		for i := range rest {
			bodies = append(append(bodies, rest[i]), meant[i*10:i*10+10]...)
		}
		b.fill(t, bodies...)
		var first, last time.Time
		rounds := 0
		phase := transfer.Reading
		result, err := b.replay(t.Context(), t, transfer.Job{
			Decide: only("meant"), Rate: rate,
			Done: func(failed.Publishing, bool) {
				if last = time.Now(); first.IsZero() {
					first = last
				}
			},
			Progress: func(p transfer.Progress) {
				if p.Phase == transfer.Finishing && phase != transfer.Finishing {
					rounds++
				}
				phase = p.Phase
			},
		})
		took := last.Sub(first)
		t.Logf("RabbitMQ %s: %d messages in %s, %.1f/s, in %d rounds: %+v, %v", b.Version, n, took, float64(n)/took.Seconds(), rounds, result, err)
		assert.True(t, err == nil && result.Confirmed == n && result.Uncertain == 0 && !result.Unverified,
			"not all were replayed, or some were doubled")
		off := took.Seconds()/lasts.Seconds() - 1
		assert.Truef(t, off <= tolerance && off >= -tolerance, "it took %s, want %s", took, lasts)
		b.expect(t, target, meant)
		b.expect(t, source, rest)
	})
}
