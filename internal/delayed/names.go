package delayed

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
)

// Names is a delayed exchange's name, which determines the names of its objects.
type Names string

// Exchange is the exchange that applications publish to.
func (n Names) Exchange() string { return string(n) }

// DeliverExchange is the exchange that routes due messages. Applications bind their queues to it.
func (n Names) DeliverExchange() string { return string(n) + ".deliver" }

// Inbox is the queue that the sidecar consumes.
func (n Names) Inbox() string { return n.delayPrefix() + "inbox" }

// UnroutedExchange is the exchange that leads to the queue of the same name.
func (n Names) UnroutedExchange() string { return n.delayPrefix() + "unrouted" }

// UnroutedQueue keeps messages that cannot be delayed, or that cannot be routed when they are due.
func (n Names) UnroutedQueue() string { return n.UnroutedExchange() }

// Refused names an exchange and its queue for messages that a queue behind the deliver exchange refused. The policy and
// the sidecar's permissions cover the name like a level's. It differs from every level's name, because no level waits
// 0s.
func (n Names) Refused() string { return n.delayPrefix() + "0s.0" }

// OnlyUnrouted is the exchange that leads only to the unrouted queue. It is for messages that another owner's queue on
// the unrouted exchange refused. The sidecar's permissions cover its name too.
func (n Names) OnlyUnrouted() string { return n.delayPrefix() + "0s.1" }

// Level is the name of both the exchange and the queue of a level.
func (n Names) Level(l Level) string {
	return n.delayPrefix() + pipeline.FormatDelay(l.Unit) + "." + strconv.Itoa(l.Bit)
}

// Lock is an exclusive queue of a connection that looks at a level.
func (n Names) Lock() string { return n.delayPrefix() + "lock" }

// LevelOf returns the level in the name of an exchange or queue, and false for other names.
func (n Names) LevelOf(name string) (Level, bool) {
	rest, found := strings.CutPrefix(name, n.delayPrefix())
	dot := strings.LastIndex(rest, ".")
	if !found || dot < 0 {
		return Level{}, false
	}
	unit, err := pipeline.ParseDelay(rest[:dot])
	bit, notNumber := strconv.Atoi(rest[dot+1:])
	if err != nil || notNumber != nil || unit == 0 || bit < 0 || bit >= MostLevels || unit > pipeline.MaxDelay>>bit {
		return Level{}, false
	}
	l := Level{Unit: unit, Bit: bit}
	return l, n.Level(l) == name
}

// QueuesPolicy names the policy that keeps other policies off the delayed exchange's queues.
func (n Names) QueuesPolicy() string {
	return "delay" + pipeline.Separator + string(n) + pipeline.Separator + "queues"
}

func (n Names) delayPrefix() string { return string(n) + ".delay." }

// MostLevels is more than any delay needs: ten years in milliseconds have 39 bits.
const MostLevels = 40

// Level is a stage that a delayed message waits in or passes.
type Level struct {
	// Unit is the wait of level 0, which is the precision.
	Unit time.Duration
	// Bit is the number of the level, counted from 0.
	Bit int
}

// Wait returns how long messages stay in the level's queue.
func (l Level) Wait() time.Duration { return l.Unit << l.Bit }

// Longest returns how long a message that enters the level now can take. It can wait in each level below too.
func (l Level) Longest() time.Duration { return 2*l.Wait() - l.Unit }

// BitKeyPrefix begins the headers that guide a message through the levels. It has one for its first level and each
// level below: true if it waits there, false if it passes.
const BitKeyPrefix = "delay-"

// BitKey returns the name of a level's header.
func BitKey(bit int) string { return BitKeyPrefix + strconv.Itoa(bit) }

// LevelCount is how many levels it takes to wait for up to the longest delay.
func LevelCount(longest, unit time.Duration) int { return bits.Len64(uint64(Units(longest, unit))) } //nolint:gosec // not negative

// Units returns the delay in units, rounded up.
func Units(delay, unit time.Duration) int64 { return int64((delay + unit - 1) / unit) }

// Way describes how a message waits for a delay.
type Way struct {
	// Entry is the level that the message enters first.
	Entry Level
	// Bits are the headers for each level up to Entry: true if the message waits there.
	Bits map[string]bool
}

// Wait returns how long the message waits in all levels together.
func (w Way) Wait() time.Duration {
	return Rest(w.Entry.Bit+1, w.Entry.Unit, func(bit int) bool { return w.Bits[BitKey(bit)] })
}

// Rest returns how long a message waits in the levels below a bit. The function says whether it waits in a level.
func Rest(below int, unit time.Duration, waits func(bit int) bool) (rest time.Duration) {
	for bit := range below {
		if waits(bit) {
			rest += unit << bit
		}
	}
	return rest
}

// WayOf returns the way of a message for a positive delay.
func WayOf(delay, unit time.Duration) Way {
	units := Units(delay, unit)
	top := bits.Len64(uint64(units)) - 1 //nolint:gosec // not negative
	way := Way{Entry: Level{Unit: unit, Bit: top}, Bits: make(map[string]bool, top+1)}
	for bit := range top + 1 {
		way.Bits[BitKey(bit)] = units>>bit&1 == 1
	}
	return way
}

// Notes returns the two exchanges for notes. A note is kept at the first one that is not re-created.
func (n Names) Notes() stored.Notes { return stored.Notes{n.UnroutedExchange(), n.Exchange()} }
