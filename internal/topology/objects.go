// Package topology is a model of RabbitMQ objects: exchanges, queues, bindings and policies of a
// vhost, how they differ from one another, how a plan shows them, and which policies apply to them.
//
// It is pure: it talks to no broker, knows nothing of Terraform, and nothing of retries.
package topology

import (
	"cmp"
	"slices"
)

// Queue types that a pipeline can be made of.
const (
	Quorum  = "quorum"
	Classic = "classic"
)

// Topology is a set of broker objects in one vhost: what a pipeline wants, what a broker has, or
// the difference of the two. Keys are names.
type Topology struct {
	Exchanges map[string]Exchange
	Queues    map[string]Queue
	Bindings  []Binding
	Policies  map[string]Policy
}

// Arguments are a queue's, an exchange's or a binding's arguments, or a policy's definition.
// Values are what JSON has: string, bool, int64, float64, []any and map[string]any.
type Arguments map[string]any

// Exchange is an exchange as the broker knows it; the zero flags are those of a pipeline's own.
type Exchange struct {
	Type       string
	Transient  bool
	AutoDelete bool
	Internal   bool
	Arguments  Arguments
}

// Queue is a queue as the broker knows it; the zero flags are those of a pipeline's own. The
// argument x-queue-type is in Type and never in Arguments: newer brokers add it to every queue.
type Queue struct {
	Type       string
	Transient  bool
	AutoDelete bool
	Exclusive  bool
	Arguments  Arguments
}

// Binding leads messages from an exchange to a queue, or to an exchange if ToExchange is set.
type Binding struct {
	Source      string
	Destination string
	ToExchange  bool
	RoutingKey  string
	Arguments   Arguments
	// PropertiesKey is the broker's handle for the binding, empty unless it was read from there.
	PropertiesKey string
	// Exact are the arguments as the broker sent them, nil unless it was read from there: from 4.0 on, brokers
	// tell 1.0 from 1, which Arguments do not.
	Exact map[string]any
}

// Policy gives arguments to the objects whose names match its pattern.
type Policy struct {
	Pattern    string
	ApplyTo    string
	Priority   int
	Definition Arguments
	// Rank orders policies of one owner and priority: one of a higher rank is written first, since it may
	// receive queues that those of lower ranks let go of. Brokers do not know it, and Equal ignores it.
	Rank int
}

// New returns a topology without any object, to add some to.
func New() Topology {
	return Topology{Exchanges: map[string]Exchange{}, Queues: map[string]Queue{}, Policies: map[string]Policy{}}
}

// Empty reports whether there is no object at all.
func (t Topology) Empty() bool {
	return len(t.Exchanges)+len(t.Queues)+len(t.Bindings)+len(t.Policies) == 0
}

// Strategies of dead-lettering.
const (
	// AtLeastOnce keeps a dead letter until its targets have taken it. Quorum queues only, together
	// with overflow = reject-publish (rabbit_quorum_queue:dead_letter_handler).
	AtLeastOnce = "at-least-once"
	// AtMostOnce drops a dead letter whose target does not take it.
	AtMostOnce = "at-most-once"
)

// Vhost is what a broker reports of a vhost: its objects and what decides how they behave.
type Vhost struct {
	Name string
	Topology
	// OperatorPolicies apply on top of policies, and no policy keeps them away.
	OperatorPolicies map[string]Policy
	// Nodes is how many nodes the cluster has, running or not.
	Nodes int
	// Version of the broker.
	Version Version
}

// Version is a broker's version, as far as behaviour depends on it.
type Version struct{ Major, Minor, Patch int }

// BeforePatch reports whether the version is older than the one given, to the last number.
func (v Version) BeforePatch(major, minor, patch int) bool {
	return v.Before(major, minor) || v.Major == major && v.Minor == minor && v.Patch < patch
}

// Before reports whether the version is older than the one given.
func (v Version) Before(major, minor int) bool {
	return v.Major < major || v.Major == major && v.Minor < minor
}

// Sort sorts by way of pointers: the code for those is in the sidecar's binary once, and that for each struct takes up to
// eighteen kilobytes.
func Sort[T any](list []T, compare func(a, b *T) int) {
	order := make([]*T, len(list))
	for i := range list {
		element := list[i]
		order[i] = &element
	}
	slices.SortFunc(order, compare)
	for i, element := range order {
		list[i] = *element
	}
}

// Untouched reports whether all that an owner has in a vhost is there exactly as it would be made, and nothing is bound to
// it or from it.
func Untouched(owned, made, vhost Topology) bool {
	changes := Diff(owned, made)
	return !owned.Empty() && changes.Create.Empty() && changes.Replace.Empty() && changes.Update.Empty() &&
		!slices.ContainsFunc(vhost.Bindings, owned.Meets)
}

// Meets reports whether a binding begins or ends at one of the objects. Those of the default exchange do not count.
func (t Topology) Meets(b Binding) bool {
	_, from := t.Exchanges[b.Source]
	_, to := t.Queues[b.Destination]
	if b.ToExchange {
		_, to = t.Exchanges[b.Destination]
	}
	return b.Source != "" && (from || to)
}

// Distinct sorts a list, and leaves out what is in it twice. It reuses the memory of the list.
func Distinct[T cmp.Ordered](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}
