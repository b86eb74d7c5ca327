// Package backpressure bounds how many received bytes wait for the application.
//
// The client library takes all that it reads into memory, and a prefetch counts messages of any size. The package knows
// nothing of the protocol.
package backpressure

import "sync"

// Gate bounds the bytes that a connection has read and the application has not released. Without a limit, it bounds
// nothing.
type Gate struct {
	mu      sync.Mutex
	changed sync.Cond
	// limit is 0 if there is no limit.
	limit, held int
	closed      bool
}

// Limit bounds the bytes of messages that have been read and not released. Above the limit, nothing at all is read. An
// application that waits for the broker's answer must therefore continue to take messages.
func (i *Gate) Limit(bytes int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.limit = bytes
}

// Release says that the application has finished with this many bytes.
func (i *Gate) Release(bytes int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held -= bytes
	i.changed.Broadcast()
}

// Full reports whether there is no room.
func (i *Gate) Full() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.full()
}

// Admit waits until there is room, and reports whether it waited. Then it holds this many bytes.
func (i *Gate) Admit(bytes int) (waited bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.full() {
		waited = true
		i.changed.L = &i.mu
		i.changed.Wait()
	}
	i.held += bytes
	return waited
}

// End ends a wait, and lifts the limit.
func (i *Gate) End() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed.Broadcast()
}

func (i *Gate) full() bool { return i.limit > 0 && i.held > i.limit && !i.closed }
