//go:build load

package loadtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// ledger knows what became of each message, by its id.
type ledger struct {
	mu        sync.Mutex
	published map[string]bool
	// delivered and first are how often and since when, if a consumer enters it.
	delivered map[string]int
	first     map[string]time.Time
	processed map[string]int
	// failed has the reasons for which messages were parked.
	failed map[string][]string
	// returned and refused were never the broker's.
	returned, refused int
	rejections        int
}

func newLedger() *ledger {
	return &ledger{
		published: map[string]bool{}, delivered: map[string]int{}, first: map[string]time.Time{},
		processed: map[string]int{}, failed: map[string][]string{},
	}
}

func (l *ledger) with(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// sent counts the published messages.
func (l *ledger) sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.published)
}

// missing lists what was published and has neither been processed nor parked.
func (l *ledger) missing() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for id := range l.published {
		if l.processed[id] == 0 && len(l.failed[id]) == 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// duplicated counts the messages that ended more than once.
func (l *ledger) duplicated() int {
	n := 0
	for id := range l.published {
		if l.processed[id]+len(l.failed[id]) > 1 {
			n++
		}
	}
	return n
}

// String is the balance so far.
func (l *ledger) String() string { return l.balance("under way") }

// balance calls what has not ended by this word.
func (l *ledger) balance(rest string) string {
	missing := l.missing()
	l.mu.Lock()
	defer l.mu.Unlock()
	reasons := map[string]int{}
	for _, why := range l.failed {
		reasons[why[0]]++
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		parts = append(parts, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	return fmt.Sprintf("published %d, processed %d, failed %d (%s), duplicated %d, %s %d; rejected %d times, refused by the broker %d",
		len(l.published), len(l.processed), len(l.failed), strings.Join(parts, ", "), l.duplicated(), rest, len(missing), l.rejections, l.refused+l.returned)
}
