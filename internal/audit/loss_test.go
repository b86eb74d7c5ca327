package audit_test

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Each fault loses messages, or makes more of them, on a real broker, and the audit of that vhost says
// so. Fixed, it does neither.
func TestFaultsOnABroker(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				name  string
				vhost part
				left  int
				rules []string
			}{
				{"faulty", f.faulty, f.left, f.rules},
				{"fixed", f.fixed, f.kept, nil},
			} {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					s := createVhost(t, c.vhost)
					if !f.concerns(s) {
						c.left, c.rules = f.kept, nil
					}
					expectRules(t, s.audit(), c.rules...)
					f.die(s)
					s.settles("all queues", s.total, c.left)
				})
			}
		})
	}
}

// concerns reports whether the broker's version has the fault.
func (f fault) concerns(s *liveVhost) bool {
	if s.VersionAtLeast("4.0") {
		return f.before == topology.Version{}
	}
	return f.since == topology.Version{}
}

func TestFaultsAsValues(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newer, older := f.rules, f.rules
			if f.since != (topology.Version{}) {
				older = nil
			}
			if f.before != (topology.Version{}) {
				newer = nil
			}
			expectRules(t, audit.Vhost(vhost(f.faulty)), newer...)
			expectRules(t, audit.Vhost(vhost(f.faulty, version(3, 13))), older...)
			expectRules(t, audit.Vhost(vhost(f.fixed)))
			expectRules(t, audit.Vhost(vhost(f.fixed, version(3, 13))))
		})
	}
}
