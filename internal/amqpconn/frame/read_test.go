package frame_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
)

// steady is a connection where this many bytes arrive for each read, if they fit.
type steady struct {
	net.Conn
	comes int
	room  []int
}

func (s *steady) Read(p []byte) (int, error) {
	s.room = append(s.room, len(p))
	clear(p)
	return min(len(p), s.comes), nil
}

// A connection that gets little data takes little memory. One that gets much data is read in large pieces.
func TestReadsAreAsLargeAsWhatComes(t *testing.T) {
	t.Parallel()
	for comes, want := range map[int]int{100: 4 << 10, 1 << 20: 64 << 10} {
		under := &steady{comes: comes}
		c := frame.Guarded(under)
		for part := make([]byte, 64); len(under.room) < 3; {
			_, err := c.Read(part)
			require.NoError(t, err)
		}
		if under.room[0] != 4<<10 || under.room[2] != want {
			t.Errorf("%d bytes at a time: read with room for %d, want %d in the end", comes, under.room, want)
		}
	}
}
