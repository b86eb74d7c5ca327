package brokertest

import (
	"context"
	"os"
	"testing"
	"time"
)

// Patience is how long anything may take that must happen, on a machine that does other things, too. TEST_PATIENCE sets it ("10m").
var Patience = patience()

func patience() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("TEST_PATIENCE")); err == nil {
		return d
	}
	return 3 * time.Minute
}

// Polls begin close to each other and become rarer: a broker that many tests ask at once has better things to do.
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

// Receive returns what comes from the channel, the zero value once it is closed, and fails the test if nothing does for [Patience].
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

// Within returns what comes from the channel within this time, for what must not come, and for a pace.
func Within[T any](from <-chan T, length time.Duration) (value T, came bool) {
	select {
	case value = <-from:
		return value, true
	case <-time.After(length):
		return value, false
	}
}

// Bounded is the test's context, which ends after [Patience].
func Bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

const slowness = 4

// Slow is what a promise to users becomes on a machine whose processors run other tests, too.
func Slow(promised time.Duration) time.Duration { return slowness * promised }
