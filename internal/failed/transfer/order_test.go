package transfer_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// seen goes over the queue without any change, up to this many messages, and returns their bodies.
func (b *bench) seen(t *testing.T, atMost int) (bodies []string) {
	t.Helper()
	_, err := transfer.Run(t.Context(), b.Queue, transfer.Job{Decide: func(e *failed.Entry) transfer.Choice {
		bodies = append(bodies, string(e.Body))
		return transfer.Choice{Last: len(bodies) == atMost}
	}})
	require.NoError(t, err)
	return bodies
}

// More messages than one consumer can hold.
func TestLooksWithSeveralConsumers(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		bodies := numbered("m", 70_000)
		b.fill(t, bodies...)
		for _, atMost := range []int{0, 10, 0} {
			got := b.seen(t, atMost)
			assert.Truef(t, slices.IsSorted(got) && len(got) == max(atMost, len(bodies)*(1-min(atMost, 1))), "%d, up to %d", len(got), atMost)
		}
	})
}

// A killed look leaves all messages, in their order.
func TestKilledLooksKeepTheOrder(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		bodies := numbered("m", 3000)
		b.fill(t, bodies...)
		for range 5 {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLookingChild$")
			child.Env = append(os.Environ(), envChild+"="+b.Vhost)
			out, err := child.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, child.Start())
			_, err = out.Read(make([]byte, 1)) // it has begun
			require.NoError(t, err)
			time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond) // any moment
			_ = child.Process.Kill()
			_ = child.Wait()
			brokertest.Eventually(t, func() error {
				count, err := b.Count(t.Context())
				if err == nil && count.Ready < len(bodies) {
					return errTooFew
				}
				return err
			})
		}
		assert.Equal(t, bodies, b.seen(t, 0))
	})
}

// TestLookingChild is the process to kill.
func TestLookingChild(t *testing.T) {
	t.Parallel()
	vhost := os.Getenv(envChild)
	if vhost == "" {
		t.Skip("runs in a process of its own") //nolint:forbidigo // not of the broker
	}
	b := benchIn(vhost)
	_, _ = os.Stdout.WriteString("begun\n")
	for range 50 {
		b.look(t.Context(), t)
	}
}

// A run that ends early leaves the rest in its order.
func TestRunsKeepTheOrder(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		bodies := numbered("m", 5000)
		b.fill(t, bodies...)
		for _, limit := range []int{1, 10, 2000, 2600, 1, 150} { // in the end there are fewer than a run can hold
			result, err := b.replay(t.Context(), t, transfer.Job{Decide: move, Limit: limit})
			assert.Truef(t, err == nil && result.Confirmed == limit && !result.Unverified, "%+v, %v", result, err)
			assert.ElementsMatch(t, bodies[:limit], b.drain(t, target))
			bodies = bodies[limit:]
			assert.Equal(t, bodies, b.seen(t, 0))
		}
	})
}
