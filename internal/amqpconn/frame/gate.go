package frame

import "sync/atomic"

// Gate bounds the bytes that a connection has read and the application has not released. The client takes all that it
// reads into memory, and a prefetch counts messages of any size. Without a limit, it bounds nothing.
type Gate struct {
	// limit is 0 if there is no limit.
	limit, held atomic.Int64
	// ended says that the connection is closed. Then no reader waits.
	ended atomic.Bool
	// changed ends a wait for room.
	changed chan struct{}
}

// Limit bounds the bytes of messages that have been read and not released. Above the limit, nothing at all is read. An
// application that waits for the broker's answer must therefore continue to take messages.
func (g *Gate) Limit(bytes int) {
	g.limit.Store(int64(bytes))
	g.wake()
}

// Release says that the application has finished with this many bytes.
func (g *Gate) Release(bytes int) {
	g.held.Add(-int64(bytes))
	g.wake()
}

// Full reports whether there is no room.
func (g *Gate) Full() bool {
	limit := g.limit.Load()
	return limit > 0 && g.held.Load() > limit && !g.ended.Load()
}

// admit waits until there is room, and reports whether it waited. Then it holds this many bytes. Only the goroutine
// that reads calls it.
func (g *Gate) admit(bytes int) (waited bool) {
	for g.Full() {
		waited = true
		<-g.changed
	}
	g.held.Add(int64(bytes))
	return waited
}

// end ends a wait for room, and all later ones.
func (g *Gate) end() {
	g.ended.Store(true)
	g.wake()
}

func (g *Gate) wake() {
	select {
	case g.changed <- struct{}{}:
	default: // it wakes up anyway
	}
}
