// Package backpressure bounds how much of what a connection has received waits for the application.
//
// The client library takes all that comes into memory, and a prefetch counts messages, however large. It knows
// nothing of the protocol.
package backpressure

import "sync"

// Gate bounds what a connection has read, and the application is not done with. Nothing is bounded without a limit.
type Gate struct {
	mu      sync.Mutex
	changed *sync.Cond
	// limit is 0 for none.
	limit, held int
	closed      bool
}

// Limit bounds the bytes of messages that have been read, and are not released. While there are more, nothing at
// all is read: who waits for an answer of the broker has to go on taking messages.
func (i *Gate) Limit(bytes int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.limit = bytes
}

// Release says that so many bytes are done with.
func (i *Gate) Release(bytes int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held -= bytes
	i.change()
}

// Full reports whether there is no room.
func (i *Gate) Full() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.full()
}

// Admit waits until there is room, and reports whether it had to. Then so many bytes are held.
func (i *Gate) Admit(bytes int) (waited bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.full() {
		waited = true
		if i.changed == nil {
			i.changed = sync.NewCond(&i.mu)
		}
		i.changed.Wait()
	}
	i.held += bytes
	return waited
}

// End ends a wait, and the limit.
func (i *Gate) End() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.change()
}

func (i *Gate) full() bool { return i.limit > 0 && i.held > i.limit && !i.closed }

func (i *Gate) change() {
	if i.changed != nil {
		i.changed.Broadcast()
	}
}
