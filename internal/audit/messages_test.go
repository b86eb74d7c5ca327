package audit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// The templates get the values they name: none is missing, none is left over.
func TestMessagesAreComplete(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		for _, found := range slices.Concat(audit.Vhost(vhost(f.faulty)), audit.Vhost(vhost(f.faulty, version(3, 13)))) {
			if text := found.Message + found.Remedy; strings.Contains(text, "%!") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

func TestUnroutableMessages(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]part{
		`The dead-letter exchange "orders.failed" of queue "orders.inbox" leads to no queue, ` +
			`and no alternate exchange receives what it cannot route. Messages that die there are dropped silently.`: all(expanded(topology.Classic), unbound("orders.failed")),
		`The dead-letter exchange "dead" of queue "work" leads to no queue for the dead-letter routing key "lost", ` +
			`and no alternate exchange receives what it cannot route. Messages that die there are dropped silently.`: all(
			classic("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "lost"}), parked, exchange("dead", "direct", nil), bind("dead", "parked", "dead")),
	} {
		found := audit.Vhost(vhost(c))
		if !slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Message == want }) {
			t.Errorf("found %+v, want %s", found, want)
		}
	}
}
