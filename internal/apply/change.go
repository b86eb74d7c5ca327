package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Change is a change of the objects of one owner in a vhost.
type Change struct {
	Vhost string
	// All is the whole vhost, read just now.
	All topology.Vhost
	// Live is what the owner has in it.
	Live topology.Topology
	// Wanted is what the owner shall have.
	Wanted topology.Topology
	// HeldIn are work queues whose undelivered dead letters the change would delete.
	HeldIn []string
	// Published are queues of the owner that others publish to and consume.
	Published []string
	// FailedQueue catches what has nowhere else to go.
	FailedQueue string
	// Shield is the policy that protects the owner's queues for as long as they exist.
	Shield string
	// Rerouted tells that the change restores the way of dead letters that may be held.
	Rerouted bool
	// Renew reads the vhost again after a wait, and says whether the change may still be made; nil if
	// there is nothing to look for.
	Renew func(context.Context) (all topology.Vhost, live topology.Topology, err error)
	// Drain is how long to wait for queues that hold messages; Waiting, if it is set, is told about
	// once a second what is waited for.
	Drain   time.Duration
	Waiting func(holdings map[string]string)
}

// KeptError says that queues were not deleted, since messages could have been lost.
type KeptError struct {
	// Queues says for each queue what speaks against deleting it.
	Queues map[string]string
}

// Error lists the queues and what they hold.
func (e *KeptError) Error() string { return Describe(e.Queues) }

// NotUndoneError says what could not be put back after a change failed.
type NotUndoneError struct{ Err error }

// Error says what is different now, and why.
func (e *NotUndoneError) Error() string { return e.Err.Error() }

// Unwrap returns the reasons.
func (e *NotUndoneError) Unwrap() error { return e.Err }

// Describe lists queues and what they hold, one in a line.
func Describe(queues map[string]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		lines = append(lines, fmt.Sprintf("  - %s: %s", name, queues[name]))
	}
	return strings.Join(lines, "\n")
}
