package brokertest

import (
	"testing"
	"time"
)

// Polls begin close to each other and become rarer: a broker that many tests ask at once has better things to do.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// Eventually calls check until it returns nil, and fails the test with check's last error after the timeout.
func Eventually(t testing.TB, timeout time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for pause := firstPause; ; pause = min(pause*3/2, maxPause) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", timeout, err)
		}
		time.Sleep(pause)
	}
}
