// Package drift changes by hand, one after the other, every attribute of every object of a resource. It checks that each plan
// shows the change and each apply repairs it.
package drift

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Subject is a resource in a vhost.
type Subject struct {
	// Type is the resource's type, and Config its configuration.
	Type   string
	Config map[string]any
	// Wanted has the resource's objects.
	Wanted topology.Topology
	// WorkQueues are queues of others that the resource needs, with their types.
	WorkQueues map[string]string
	// Queues are queues with messages: the resource's own queues, apart from one that messages leave at once, and queues of
	// others.
	Queues []string
	// Foreign adds objects of others that are bound to the resource's objects, and leaves existing ones unchanged.
	Foreign func(t *testing.T, b *brokertest.Broker)
	// Alike reports whether one binding can have the destination of another.
	Alike func(a, b topology.Binding) bool
	// Twin is a policy's name that the resource would recognize as its own but does not use, "" if there is no such name.
	Twin string
}
