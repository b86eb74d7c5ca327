package session

import (
	"testing"
	"time"
)

// Nothing is left to the broker while the failed queue is missing, or may not be bound yet.
func TestRejectionsWaitForTheFailedQueue(t *testing.T) {
	t.Parallel()
	var r rejections
	now := time.Now()
	for _, step := range []struct {
		after   time.Duration
		missing bool
		safe    bool
	}{
		{0, false, true},
		{time.Second, true, false},
		{20 * time.Second, false, false},
		{20*time.Second + bindingTime - time.Millisecond, false, false},
		{20*time.Second + bindingTime, false, true},
	} {
		at := now.Add(step.after)
		r.looked(step.missing, at)
		if got := r.safe(at); got != step.safe {
			t.Errorf("after %s: %t", step.after, got)
		}
	}
}
