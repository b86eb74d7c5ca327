// Package topology is a model of a vhost's exchanges, queues, bindings and policies. It shows how they differ, how a
// plan shows them, and which policies apply to them.
//
// It is pure. It knows nothing of brokers' APIs, Terraform or retries.
package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Queue types that a pipeline can be made of.
const (
	Quorum  = "quorum"
	Classic = "classic"
)

// Topology is a set of broker objects in one vhost, keyed by name. It holds the objects that a pipeline wants, the
// objects on a broker, or the difference.
type Topology struct {
	Exchanges map[string]Exchange
	Queues    map[string]Queue
	Bindings  []Binding
	Policies  map[string]Policy
}

// Arguments are the arguments of a queue, exchange or binding, or a policy's definition. Values have the types of JSON:
// string, bool, int64, float64, []any and map[string]any.
type Arguments map[string]any

// Exchange is an exchange on the broker. A pipeline's own exchanges have no flag set.
type Exchange struct {
	Type       string
	Transient  bool
	AutoDelete bool
	Internal   bool
	Arguments  Arguments
}

// Queue is a queue on the broker. A pipeline's own queues have no flag set. The argument x-queue-type is only in Type,
// because newer brokers add it to every queue.
type Queue struct {
	Type       string
	Transient  bool
	AutoDelete bool
	Exclusive  bool
	Arguments  Arguments
}

// Binding routes messages from an exchange to a queue, or to an exchange if ToExchange is set.
type Binding struct {
	Source      string
	Destination string
	ToExchange  bool
	RoutingKey  string
	Arguments   Arguments
	// PropertiesKey is the broker's identifier of the binding. It is empty if the binding was not read from a broker.
	PropertiesKey string
	// Exact has the arguments as the broker sent them, or nil if the binding was not read from a broker. From 4.0 on,
	// brokers tell 1.0 from 1, and Arguments do not.
	Exact map[string]any
}

// Policy gives arguments to the objects whose names match its pattern.
type Policy struct {
	Pattern    string
	ApplyTo    string
	Priority   int
	Definition Arguments
	// Rank orders policies of one owner with the same priority. The highest rank is written first, because it can cover
	// queues that lower ranks release. Brokers do not store it, and Equal ignores it.
	Rank int
}

// New returns a topology with empty maps.
func New() Topology {
	return Topology{Exchanges: map[string]Exchange{}, Queues: map[string]Queue{}, Policies: map[string]Policy{}}
}

// Empty reports whether the topology has no objects.
func (t Topology) Empty() bool {
	return len(t.Exchanges)+len(t.Queues)+len(t.Bindings)+len(t.Policies) == 0
}

// Dead-letter strategies.
const (
	// AtLeastOnce keeps a dead letter until its targets have confirmed it. It works only on quorum queues with overflow
	// = reject-publish (rabbit_quorum_queue:dead_letter_handler).
	AtLeastOnce = "at-least-once"
	// AtMostOnce drops a dead letter if its target does not accept it.
	AtMostOnce = "at-most-once"
)

// Vhost is the broker's report of a vhost: its objects, and the facts that decide how they behave.
type Vhost struct {
	Name string
	Topology
	// OperatorPolicies apply in addition to policies, and no policy can prevent that.
	OperatorPolicies map[string]Policy
	// Nodes is the number of nodes in the cluster, running or not.
	Nodes int
	// Version is the broker's version.
	Version Version
	// Flags says which feature flags are enabled, nil if that is not known. Only on RabbitMQ 3.13 it matters.
	Flags map[string]bool
	// Whole is all of the live vhost if this is a part of it, otherwise nil.
	Whole *Topology
}

// Everything returns all of the live vhost, also if this is a part of it.
func (v Vhost) Everything() Topology {
	if v.Whole != nil {
		return *v.Whole
	}
	return v.Topology
}

// Version is a broker's version: major, minor and patch number.
type Version struct{ Major, Minor, Patch int }

// BeforePatch reports whether the version is older than major.minor.patch.
func (v Version) BeforePatch(major, minor, patch int) bool {
	return v.Before(major, minor) || v.Major == major && v.Minor == minor && v.Patch < patch
}

// Before reports whether the version is older than major.minor.
func (v Version) Before(major, minor int) bool {
	return v.Major < major || v.Major == major && v.Minor < minor
}

// Sort sorts a list by comparing pointers. That code is in the sidecar's binary only once, and a version for each
// struct would take up to eighteen kilobytes.
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

// SortByText sorts a list by texts that are made once.
func SortByText[T fmt.Stringer](list []T) {
	type rendered struct {
		text    string
		element *T
	}
	order := make([]rendered, len(list))
	for i, element := range list {
		order[i] = rendered{element.String(), &element}
	}
	slices.SortFunc(order, func(a, b rendered) int { return strings.Compare(a.text, b.text) })
	for i, r := range order {
		list[i] = *r.element
	}
}

// Untouched reports whether all of an owner's objects are exactly as a creation makes them, and no binding touches
// them.
func Untouched(owned, made, vhost Topology) bool {
	changes := Diff(owned, made)
	return !owned.Empty() && changes.Create.Empty() && changes.Replace.Empty() && changes.Update.Empty() &&
		!slices.ContainsFunc(vhost.Bindings, owned.Meets)
}

// Meets reports whether a binding begins or ends at one of the objects. Bindings of the default exchange do not count.
func (t Topology) Meets(b Binding) bool {
	_, from := t.Exchanges[b.Source]
	_, to := t.Queues[b.Destination]
	if b.ToExchange {
		_, to = t.Exchanges[b.Destination]
	}
	return b.Source != "" && (from || to)
}

// Distinct sorts a list and removes duplicates. It reuses the list's memory.
func Distinct[T cmp.Ordered](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}
