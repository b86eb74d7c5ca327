//go:build load

package worker_test

import (
	"testing"
	"time"
)

// A full queue stops nobody for a minute, either.
func TestLoadFullFailedQueueOfATeam(t *testing.T) {
	t.Parallel()
	testFullFailedQueue(t, time.Minute)
}
