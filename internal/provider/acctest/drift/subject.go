// Package drift changes by hand, one after the other, every attribute of every object that a resource owns, and checks that
// each plan shows it, and each apply repairs it.
package drift

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Subject is a resource in a vhost.
type Subject struct {
	// Type is the resource's, and Config how it is configured.
	Type   string
	Config map[string]any
	// Wanted is what it owns.
	Wanted topology.Topology
	// WorkQueues are queues of others that it needs, with their types.
	WorkQueues map[string]string
	// Queues hold messages: its own, but for one that messages leave at once, and those of others.
	Queues []string
	// Foreign adds objects of others that meet its own; nothing changes where they are there already.
	Foreign func(t *testing.T, b *brokertest.Broker)
	// Alike reports whether one of its bindings may lead where another one does.
	Alike func(a, b topology.Binding) bool
	// Twin is a name that it would take for one of its policies' and gives to none; empty if it has no such name.
	Twin string
}
