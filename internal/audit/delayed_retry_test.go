package audit_test

import (
	"testing"
)

// A delayed retry that the broker ignores comes back at once.
func TestDelayedRetry(t *testing.T) {
	t.Parallel()
	delayed := func(kind string) part {
		return all(quorum("work", toParked(args{"x-delayed-retry-type": kind, "x-delayed-retry-min": number(60_000)})), parked)
	}
	for kind, works := range map[string]bool{"all": true, "al": false} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, delayed(kind))
			published(1)(s)
			s.requeue("work", 1)
			if works && s.VersionAtLeast("4.3") {
				expectRules(t, s.audit())
				s.settles("work", func() int { return s.count("work") }, 0)
				return
			}
			expectRules(t, s.audit(), "native-retry-ignored")
			s.settles("work", func() int { return s.count("work") }, 1)
		})
	}
}
