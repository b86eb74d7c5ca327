package delayed

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
)

// Names of the objects of one delayed exchange.
type Names string

// Exchange is what publishers write to.
func (n Names) Exchange() string { return string(n) }

// DeliverExchange routes the messages that are due. Applications bind their queues to it.
func (n Names) DeliverExchange() string { return string(n) + ".deliver" }

// Inbox is the queue that the sidecar consumes.
func (n Names) Inbox() string { return n.delayPrefix() + "inbox" }

// UnroutedExchange leads to the queue of the same name.
func (n Names) UnroutedExchange() string { return n.delayPrefix() + "unrouted" }

// UnroutedQueue keeps what cannot be delayed or, when it is due, routed.
func (n Names) UnroutedQueue() string { return n.UnroutedExchange() }

// Refused is the name of the exchange and the queue of what a queue behind the exchange that delivers did not take. The policy
// and the sidecar's permissions cover it as they do a level, and no level waits 0s.
func (n Names) Refused() string { return n.delayPrefix() + "0s.0" }

// OnlyUnrouted is the exchange that leads to the unrouted queue alone, for what a queue of others beside it did not take. Its name is
// one that the sidecar's permissions cover, too.
func (n Names) OnlyUnrouted() string { return n.delayPrefix() + "0s.1" }

// Level is the name of both the exchange and the queue of a level.
func (n Names) Level(l Level) string {
	return n.delayPrefix() + pipeline.FormatDelay(l.Unit) + "." + strconv.Itoa(l.Bit)
}

// LevelOf reads a level out of the name of its exchange or queue; false if it is not such a name.
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

// QueuesPolicy is the name of the policy that keeps those of others off the delayed exchange's queues.
func (n Names) QueuesPolicy() string {
	return policyPrefix + pipeline.Separator + string(n) + pipeline.Separator + "queues"
}

// policyPrefix begins the names of all policies of delayed exchanges.
const policyPrefix = "delay"

func (n Names) delayPrefix() string { return string(n) + ".delay." }

// MostLevels is more than any delay takes: ten years have 39 bits of milliseconds.
const MostLevels = 40

// Level is a stage of the way of a delayed message.
type Level struct {
	// Unit is the time of level 0, the precision.
	Unit time.Duration
	// Bit is the number of the level, from 0.
	Bit int
}

// Wait is how long messages stay in the queue of the level.
func (l Level) Wait() time.Duration { return l.Unit << l.Bit }

// Longest is how long a message that comes to the level now is under way at most: it may wait in each level below, too.
func (l Level) Longest() time.Duration { return 2*l.Wait() - l.Unit }

// BitKeyPrefix begins the headers that lead a message through the levels, one for each level below the one that it
// enters at: true if it waits there, false if it passes.
const BitKeyPrefix = "delay-"

// BitKey is the header of a level.
func BitKey(bit int) string { return BitKeyPrefix + strconv.Itoa(bit) }

// LevelCount is how many levels it takes to wait for up to the longest delay.
func LevelCount(longest, unit time.Duration) int { return bits.Len64(uint64(Units(longest, unit))) } //nolint:gosec // not negative

// Units is a delay in units, rounded up.
func Units(delay, unit time.Duration) int64 { return int64((delay + unit - 1) / unit) }

// Way is how a message waits for a delay.
type Way struct {
	// Entry is the level that it enters at.
	Entry Level
	// Bits are the headers by which it finds its way: for each level up to the entry whether it waits there.
	Bits map[string]bool
}

// WayOf is the way of a message that waits for the delay, which is positive.
func WayOf(delay, unit time.Duration) Way {
	units := Units(delay, unit)
	top := bits.Len64(uint64(units)) - 1 //nolint:gosec // not negative
	way := Way{Entry: Level{Unit: unit, Bit: top}, Bits: make(map[string]bool, top+1)}
	for bit := range top + 1 {
		way.Bits[BitKey(bit)] = units>>bit&1 == 1
	}
	return way
}

// Notes are kept at the first of these that is not re-created.
func (n Names) Notes() stored.Notes { return stored.Notes{n.UnroutedExchange(), n.Exchange()} }
