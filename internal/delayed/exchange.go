package delayed

import (
	"cmp"
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
