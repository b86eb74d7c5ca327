package audit_test

import (
	"testing"
)

// Of two policies of one priority, one applies and the other does not: never the keys of both.
func TestTiedPolicies(t *testing.T) {
	t.Parallel()
	dead := args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}
	s := createVhost(t, classic("work", nil), parked, policy("dead", "^work$", 1, dead), policy("limit", "^work$", 1, args{"max-length": number(1)}))
	expectRules(t, s.audit(), "policy-tie")
	published(2)(s)
	s.settles("parked", func() int { return s.count("parked") }, 0)

	fixed := createVhost(t, classic("work", nil), parked, policy("both", "^work$", 1, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked", "max-length": number(1)}))
	expectRules(t, fixed.audit())
	published(2)(fixed)
	fixed.settles("parked", func() int { return fixed.count("parked") }, 1)
}

// A pattern that the broker reads and the audit cannot: it says so instead of guessing.
func TestUnreadablePattern(t *testing.T) {
	t.Parallel()
	dead := args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}
	s := createVhost(t, classic("work", nil), parked, policy("dead", "^(?|work|other)$", 1, dead))
	expectRules(t, s.audit(), "policy-pattern-unreadable")
	rejected(1)(s)
	s.settles("parked", func() int { return s.count("parked") }, 1)
}
