package frame

import (
	"net"
	"testing"
)

// A limit that is set after the connection was closed holds nothing up.
func TestClosedConnectionWaitsForNoRoom(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	c := Raw(ours)
	_ = c.Close()
	c.Limit(1)
	c.admit(2)
	if c.admit(1) || c.Full() {
		t.Error("it waited for room")
	}
}
