package raw

import "sync"

// intake bounds how much of what was received waits for the application. The client takes all that comes into
// memory, and a prefetch counts messages, however large.
type intake struct {
	mu      sync.Mutex
	changed sync.Cond
	// limit is 0 for none.
	limit, held int
	closed      bool
}

// Limit bounds the bytes of properties and bodies that have been read, and are not released. While there are
// more, nothing at all is read: who waits for an answer of the broker has to go on taking messages.
func (i *intake) Limit(bytes int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.limit = bytes
}

// Release says that so many bytes are done with.
func (i *intake) Release(bytes int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held -= bytes
	i.changed.Broadcast()
}

// admit waits until there is room, and reports whether it had to.
func (i *intake) admit(bytes int) (waited bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.limit > 0 && i.held > i.limit && !i.closed {
		waited = true
		i.changed.Wait()
	}
	i.held += bytes
	return waited
}

// Close also ends a wait.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.changed.Broadcast()
	c.mu.Unlock()
	return c.Conn.Close()
}
