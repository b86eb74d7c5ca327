// Package delayed is a pure model of a delayed exchange: its objects, and how long a message waits in each level. Each
// level waits twice as long as the one below, so a few levels make up any delay. A message waits in the levels whose
// bit is set in its number of units.
package delayed

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Exchange is the specification of a delayed exchange. Its topology depends on nothing else.
type Exchange struct {
	Name  string
	Vhost string
	// Type is the type of the exchange that delivers due messages.
	Type string
	// MaxDelay is the longest delay. Precision is the unit that delays are rounded up to.
	MaxDelay, Precision pipeline.Delay
	PolicyPriority      int
	// Retired are levels that no new message enters but that earlier messages can still pass. Every level below a
	// retired one is retired or in use.
	Retired []Level
}

// Types lists the possible types of the exchange that delivers due messages, starting with the default.
func Types() []string { return []string{"topic", "direct", "fanout", "headers"} }

// DefaultPrecision is the precision if none is configured.
const DefaultPrecision = "100ms"

// Names returns the names of the delayed exchange's objects.
func (e Exchange) Names() Names { return Names(e.Name) }

// Levels lists the levels that messages wait in, from the lowest up.
func (e Exchange) Levels() []Level {
	levels := make([]Level, LevelCount(e.MaxDelay.Wait, e.Precision.Wait))
	for bit := range levels {
		levels[bit] = Level{Unit: e.Precision.Wait, Bit: bit}
	}
	return levels
}

// Uses reports whether messages enter or pass a level.
func (e Exchange) Uses(l Level) bool { return slices.Contains(e.Levels(), l) }

// RetiredUpTo lists the retired levels that are needed if all of these stay. Messages in a level pass all levels below
// it.
func (e Exchange) RetiredUpTo(staying []Level) []Level {
	var retired []Level
	for _, l := range staying {
		for ; l.Bit >= 0; l.Bit-- {
			if !e.Uses(l) {
				retired = append(retired, l)
			}
		}
	}
	SortLevels(retired)
	return slices.Compact(retired)
}

// SortLevels sorts levels by unit, from the lowest up.
func SortLevels(levels []Level) {
	topology.Sort(levels, func(a, b *Level) int { return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Bit, b.Bit)) })
}

// Worker returns the sidecar's view of the delayed exchange.
func (e Exchange) Worker() Worker {
	return Worker{
		Version: WorkerVersion, Name: e.Name, Vhost: e.Vhost,
		MaxDelay: pipeline.FormatDelay(e.MaxDelay.Wait), Precision: pipeline.FormatDelay(e.Precision.Wait),
	}
}

// WorkerVersion is the version of the worker object's format.
const WorkerVersion = 1

// Worker describes a delayed exchange for the sidecar. It is an element of "delayed_exchanges" in the sidecar's
// configuration, and the provider's attribute `worker`. It holds no secrets.
type Worker struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Vhost   string `json:"vhost"`
	// MaxDelay and Precision are durations. Messages with a longer delay go to the unrouted queue.
	MaxDelay  string `json:"max_delay"`
	Precision string `json:"precision"`
}

// Levels lists the levels that messages wait in, from the lowest up. The worker's durations must be valid.
func (w Worker) Levels() []Level {
	var e Exchange
	e.MaxDelay.Wait, _ = pipeline.ParseDelay(w.MaxDelay)
	e.Precision.Wait, _ = pipeline.ParseDelay(w.Precision)
	return e.Levels()
}

// Queues lists the queues where the delayed exchange's messages wait or end.
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

// PublisherPermissions returns the least permissions of a publisher. A user who can write to a level could deliver
// messages early or hold up other users' messages.
func PublisherPermissions(n Names) pipeline.Permissions {
	return pipeline.Permissions{
		Configure: pipeline.NoName, Write: pipeline.ExactPattern([]string{n.Exchange()}), Read: pipeline.NoName,
	}
}

// OperatorPermissions returns, for each command of the sidecar, the least permissions of a user who looks after the
// delayed exchange and its unrouted queue. The command status counts messages in the levels of every precision.
func OperatorPermissions(n Names) map[string]pipeline.Permissions {
	read := pipeline.Permissions{Configure: pipeline.NoName, Write: pipeline.NoName, Read: pipeline.ExactPattern([]string{n.UnroutedQueue()})}
	replay, imports, status := read, read, read
	replay.Write = pipeline.ExactPattern([]string{n.Exchange(), n.DeliverExchange()})
	imports.Write = pipeline.ExactPattern([]string{n.UnroutedExchange()})
	status.Read = n.ownPattern()
	waiting := pipeline.Permissions{Configure: pipeline.ExactPattern([]string{n.Lock()}), Write: pipeline.NoName, Read: n.ownPattern()}
	again := waiting
	again.Write = pipeline.ExactPattern([]string{n.Exchange()})
	return map[string]pipeline.Permissions{
		"list": read, "show": read, "export": read, "delete": read, "replay": replay, "import": imports, "repair": imports, "status": status,
		"delayed list": waiting, "delayed show": waiting, "delayed cancel": waiting,
		"delayed deliver": again, "delayed reschedule": again, "delayed import": again,
	}
}

// WorkerPermissions returns the least permissions of the sidecar's user. They cover the levels of every precision, so a
// change of precision needs no new permissions.
func WorkerPermissions(n Names) pipeline.Permissions {
	return pipeline.Permissions{
		Configure: pipeline.NoName,
		Write:     "^" + regexp.QuoteMeta(string(n)) + `\.(deliver|delay\.(unrouted|` + levelPattern + `))$`,
		Read:      pipeline.ExactPattern([]string{n.Inbox()}),
	}
}
