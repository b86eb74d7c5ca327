package pipeline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// NoName is a pattern that matches no name.
const NoName = "^$"

// Permissions are the three patterns of a broker user's permissions in a vhost.
type Permissions struct {
	Configure string
	Write     string
	Read      string
}

// OperatorPermissions returns, for each command of the sidecar, the least permissions of a user who looks after the
// pipeline. The command status counts messages in retry queues of any delay, so a schedule change needs no new
// permissions. It also counts the failed queues of work queues, and checks whether a pipeline without a worker has one.
func OperatorPermissions(p Pipeline) map[string]Permissions {
	n := p.Names()
	failed := []string{n.FailedQueue()}
	read := Permissions{Configure: NoName, Write: NoName, Read: ExactPattern(failed)}
	replay, imports, status := read, read, read
	replay.Write = ExactPattern([]string{n.ReturnExchange()})
	imports.Write = ExactPattern([]string{n.FailedExchange()})
	counted := slices.Concat(failed, p.FailedQueues(), []string{n.Inbox()})
	if !p.HasWorker() {
		counted = append(counted, n.DeadLetterExchange())
	}
	status.Read = mergePatterns([]string{ExactPattern(topology.Distinct(counted)), "^" + regexp.QuoteMeta(n.retryQueuePrefix())})
	return map[string]Permissions{
		"list": read, "show": read, "export": read, "delete": read, "replay": replay, "import": imports, "repair": imports, "status": status,
	}
}

// FailedQueuePermissions returns the least permissions of a user who looks after the failed queue of work queues. They
// do not cover imports and replays to another queue.
func FailedQueuePermissions(n Names, queue string) Permissions {
	return Permissions{Configure: NoName, Write: ExactPattern([]string{n.ReturnExchange()}), Read: ExactPattern([]string{queue})}
}

// WorkerPermissions returns the least permissions of the sidecar's user. It writes to the default exchange
// (amq.default) only to save messages whose work queue lost its binding.
func WorkerPermissions(n Names) Permissions {
	written := append([]string{"amq.default"}, n.WorkerExchanges()...)
	slices.Sort(written)
	return Permissions{Configure: NoName, Write: ExactPattern(written), Read: ExactPattern([]string{n.Inbox()})}
}

// MergePermissions allows everything that one of these permissions allows, in one vhost.
func MergePermissions(all []Permissions) Permissions {
	var configure, write, read []string
	for _, p := range all {
		configure, write, read = append(configure, p.Configure), append(write, p.Write), append(read, p.Read)
	}
	return Permissions{Configure: mergePatterns(configure), Write: mergePatterns(write), Read: mergePatterns(read)}
}

// mergePatterns skips empty patterns, because brokers take an empty pattern for one that matches nothing.
func mergePatterns(patterns []string) string {
	patterns = slices.DeleteFunc(topology.Distinct(patterns), func(p string) bool { return p == "" || p == NoName })
	if len(patterns) == 0 {
		return NoName
	}
	return strings.Join(patterns, "|")
}
