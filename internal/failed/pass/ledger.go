package pass

import "strconv"

// key is a digest in little memory, since a queue may have a million of them.
type key uint64

func keyOf(digest string) key {
	n, _ := strconv.ParseUint(digest, 16, 64) // a digest is nothing else
	return key(n)
}

// Census counts the messages of a queue by digest: equal ones share it.
type Census struct {
	copies map[key]int32
	// whole says that everything was seen, and nobody else took part.
	whole bool
}

// ledger says which messages ought to be in the queue.
type ledger struct {
	// known are the copies that were ever seen, confirmed those of which a copy is elsewhere now.
	known, confirmed map[key]int32
	// shared says that there were other consumers, whose doings are unknown.
	shared bool
	// missed says that messages may have been delivered without being seen.
	missed bool
	// partial says that not everything in the queue is known.
	partial bool
}

func newLedger(before *Result) *ledger {
	l := &ledger{known: map[key]int32{}, confirmed: map[key]int32{}}
	l.shared = before != nil && before.Consumers > 0
	if before != nil && before.Census != nil {
		l.known, l.partial = before.Census.copies, !before.Census.whole
	}
	return l
}

// done says that all copies of a message were published: this one is back for a lost acknowledgement.
func (l *ledger) done(id string, redelivered bool) bool {
	k := keyOf(id)
	return redelivered && l.confirmed[k] > 0 && l.confirmed[k] >= l.known[k]
}

// saw counts a message that cannot have been seen before. What another consumer returned, can.
func (l *ledger) saw(id string, redelivered, surveyed bool) {
	if !surveyed || !redelivered {
		l.known[keyOf(id)]++
	}
}

// surplus is how many of the copies that are still there were published, and may be acknowledged; and how many
// seem to be, which nobody can know for certain. Present are those that were delivered before.
func (l *ledger) surplus(id string, present int) (certain, doubtful int) {
	confirmed, known := int(l.confirmed[keyOf(id)]), int(l.known[keyOf(id)])
	surplus := present - max(known, confirmed) + confirmed
	switch {
	case confirmed == 0 || surplus <= 0:
		return 0, 0
	case l.shared || l.partial || l.missed && known > 1:
		return 0, min(surplus, confirmed)
	default:
		return min(surplus, confirmed), 0
	}
}
