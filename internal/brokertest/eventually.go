package brokertest

import (
	"testing"
	"time"
)

const pollInterval = 50 * time.Millisecond

// Eventually calls check until it returns nil, and fails the test with check's last error after the timeout.
func Eventually(t testing.TB, timeout time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", timeout, err)
		}
		time.Sleep(pollInterval)
	}
}
