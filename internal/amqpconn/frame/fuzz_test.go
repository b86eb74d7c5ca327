package frame_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The real client survives any content header, and the size of the reads makes no difference.
func FuzzContentHeader(f *testing.F) {
	for _, table := range poisons {
		f.Add(uint16(flags), properties(table), uint16(100))
	}
	f.Add(uint16(0xffff), []byte("\x00\x00\x00\x00\x00\x00"), uint16(1))
	f.Fuzz(func(t *testing.T, flags uint16, properties []byte, cut uint16) {
		header := contentHeader(flags, properties)
		if got := deliver(t, true, int(cut)+1, header); len(got) != 2 {
			t.Errorf("%d deliveries of 2: the client died", len(got))
		}
		stream := deliveries([][]byte{header, contentHeader(0, nil)})
		require.Equal(t, through(t, stream, len(stream)), through(t, stream, int(cut)+1), "the outcome depends on how the stream is cut")
	})
}
