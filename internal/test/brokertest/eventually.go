package brokertest

import (
	"context"
	"os"
	"testing"
	"time"
)

// Patience is how long a test waits for an event that must happen, on a machine that also runs other tests. TEST_PATIENCE
// sets it, such as "10m".
var Patience = patience()

func patience() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("TEST_PATIENCE")); err == nil {
		return d
	}
	return 3 * time.Minute
}

// The pauses between polls grow, so that many tests do not overload the broker.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// Eventually calls check until it returns nil, and fails the test with check's last error after [Patience].
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for pause := firstPause; ; pause = min(pause*3/2, maxPause) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", Patience, err)
		}
		time.Sleep(pause)
	}
}

// Receive returns a value from the channel, or the zero value if the channel is closed. It fails the test if no value comes
// for [Patience].
func Receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(Patience):
		t.Fatalf("nothing came for %s", Patience)
		panic("unreachable")
	}
}

// Within returns a value from the channel if one comes within this time. It serves events that must not happen, and pacing.
func Within[T any](from <-chan T, length time.Duration) (value T, came bool) {
	select {
	case value = <-from:
		return value, true
	case <-time.After(length):
		return value, false
	}
}

// Bounded is the test's context, and ends after [Patience].
func Bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

const slowness = 4

// Slow is the time limit for a promise to users, on a machine that also runs other tests.
func Slow(promised time.Duration) time.Duration { return slowness * promised }
