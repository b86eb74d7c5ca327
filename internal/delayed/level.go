package delayed

import (
	"math/bits"
	"strconv"
	"time"
)

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
