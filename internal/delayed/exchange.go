// Package delayed is the pure model of a delayed exchange: what it expands to, what of a vhost belongs to it, and how
// long a message waits where. Only levels of powers of two are needed for any delay: a message waits in those whose bit
// is set in the number of its units.
package delayed

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Exchange is the specification of a delayed exchange: all that its topology is a function of.
type Exchange struct {
	Name  string
	Vhost string
	// Type is that of the exchange that routes what is due.
	Type string
	// MaxDelay is the longest delay, and Precision the unit that delays are rounded up to.
	MaxDelay, Precision pipeline.Delay
	PolicyPriority      int
	// Retired are levels that no message enters at any more, but through which some may still have to go. With a level, all
	// below it are retired, or in use.
	Retired []Level
}

// Types lists the types that the exchange that routes what is due can have, the default one first.
func Types() []string { return []string{"topic", "direct", "fanout", "headers"} }

// DefaultPrecision is the precision unless it is configured.
const DefaultPrecision = "100ms"

// Names of the delayed exchange's objects.
func (e Exchange) Names() Names { return Names(e.Name) }

// Levels are those that messages wait in, from the lowest up.
func (e Exchange) Levels() []Level {
	levels := make([]Level, LevelCount(e.MaxDelay.Wait, e.Precision.Wait))
	for bit := range levels {
		levels[bit] = Level{Unit: e.Precision.Wait, Bit: bit}
	}
	return levels
}

// Uses reports whether messages enter at a level or pass it.
func (e Exchange) Uses(l Level) bool { return slices.Contains(e.Levels(), l) }

// RetiredUpTo lists the retired levels if all of these have to stay: messages in a level go through all those below it.
func (e Exchange) RetiredUpTo(staying []Level) []Level {
	top := map[time.Duration]int{}
	for _, l := range staying {
		top[l.Unit] = max(top[l.Unit], l.Bit)
	}
	var retired []Level
	for unit, highest := range top {
		for bit := range highest + 1 {
			if l := (Level{Unit: unit, Bit: bit}); !e.Uses(l) {
				retired = append(retired, l)
			}
		}
	}
	SortLevels(retired)
	return retired
}

// SortLevels sorts levels by unit, from the lowest up.
func SortLevels(levels []Level) {
	topology.Sort(levels, func(a, b *Level) int { return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Bit, b.Bit)) })
}

// Worker is the sidecar's view of the delayed exchange.
func (e Exchange) Worker() Worker {
	return Worker{
		Version: WorkerVersion, Name: e.Name, Vhost: e.Vhost,
		MaxDelay: pipeline.FormatDelay(e.MaxDelay.Wait), Precision: pipeline.FormatDelay(e.Precision.Wait),
	}
}

// WorkerVersion is the version of the worker object's shape.
const WorkerVersion = 1

// Worker is what the sidecar has to know of a delayed exchange: one element of "delayed_exchanges" in its configuration,
// and the provider's attribute `worker`. It holds no secrets.
type Worker struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Vhost   string `json:"vhost"`
	// MaxDelay and Precision are durations. A longer delay goes to the unrouted queue.
	MaxDelay  string `json:"max_delay"`
	Precision string `json:"precision"`
}

// Levels are those that messages wait in, from the lowest up. The durations are valid.
func (w Worker) Levels() []Level {
	var e Exchange
	e.MaxDelay.Wait, _ = pipeline.ParseDelay(w.MaxDelay)
	e.Precision.Wait, _ = pipeline.ParseDelay(w.Precision)
	return e.Levels()
}

// Queues are those in which the delayed exchange's messages wait or end.
func (w Worker) Queues() []pipeline.Queue {
	n := Names(w.Name)
	queues := []pipeline.Queue{
		{Name: n.Inbox(), Role: pipeline.RoleInbox},
		{Name: n.Refused(), Role: pipeline.RoleRefused},
		{Name: n.UnroutedQueue(), Role: pipeline.RoleUnrouted},
	}
	for _, l := range w.Levels() {
		queues = append(queues, pipeline.Queue{Name: n.Level(l), Role: pipeline.RoleLevel})
	}
	return queues
}

// PublisherPermissions are the least that the user of a publisher needs. Whoever may write to a level could have messages
// delivered early, or hold up those of others.
func PublisherPermissions(n Names) pipeline.Permissions {
	return pipeline.Permissions{
		Configure: pipeline.NoName, Write: pipeline.ExactPattern([]string{n.Exchange()}), Read: pipeline.NoName,
	}
}

// OperatorPermissions are the least that somebody's user needs who looks after the delayed exchange and its unrouted queue, by
// command of the sidecar. A status counts in the levels of every precision.
func OperatorPermissions(n Names) map[string]pipeline.Permissions {
	read := pipeline.Permissions{Configure: pipeline.NoName, Write: pipeline.NoName, Read: pipeline.ExactPattern([]string{n.UnroutedQueue()})}
	replay, imports, status := read, read, read
	replay.Write = pipeline.ExactPattern([]string{n.Exchange(), n.DeliverExchange()})
	imports.Write = pipeline.ExactPattern([]string{n.UnroutedExchange()})
	status.Read = n.ownPattern()
	return map[string]pipeline.Permissions{
		"list": read, "show": read, "export": read, "delete": read, "replay": replay, "import": imports, "repair": imports, "status": status,
	}
}

// WorkerPermissions are the least that the sidecar's user needs. The levels of every precision are among them: a change of
// it needs no other permissions, before the sidecar knows of it and after.
func WorkerPermissions(n Names) pipeline.Permissions {
	return pipeline.Permissions{
		Configure: pipeline.NoName,
		Write:     "^" + regexp.QuoteMeta(string(n)) + `\.(deliver|delay\.(unrouted|` + levelPattern + `))$`,
		Read:      pipeline.ExactPattern([]string{n.Inbox()}),
	}
}
