package frame_test

import (
	"bytes"
	endian "encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
)

// Flags of properties: content type, headers, delivery mode and message id.
const flags = 0x8000 | 0x2000 | 0x1000 | 0x0080

// properties returns a content type, these headers, a delivery mode and a message id.
func properties(table string) []byte {
	return []byte("\x0atext/plain" + long(table) + "\x02" + "\x02id")
}

func long(content string) string {
	return string(endian.BigEndian.AppendUint32(nil, uint32(len(content)))) + content
}

// nested returns a table entry with this many levels.
func nested(tag string, depth int) string {
	content := ""
	for range depth {
		content = "\x01k" + tag + long(content)
		if tag == "A" {
			content = content[2:]
		}
	}
	if tag == "A" {
		return "\x01k" + content
	}
	return content
}

// many returns a table with this many entries.
func many(n int) string {
	var table strings.Builder
	for i := range n {
		fmt.Fprintf(&table, "\x04%04xV", i)
	}
	return table.String()
}

var poisons = map[string]string{
	"deep table":        nested("F", 33),
	"deep list":         nested("A", 33),
	"many in a table":   many(8193),
	"many in a list":    "\x01kA" + long(strings.Repeat("V", 8193)),
	"larger than frame": "\x01kS" + long(strings.Repeat("x", frameMax)),
	"unknown type":      "\x01kL12345678",
	"cut off":           "\x01kI12",
}

// The client survives every kind of message that would kill it, and shows the other properties.
func TestClientSurvives(t *testing.T) {
	t.Parallel()
	for name, table := range poisons {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := contentHeader(flags, properties(table))
			if got := deliver(t, false, 1<<20, header); len(got) != 0 {
				t.Fatal("the client can decode this without the guard")
			}
			for _, atMost := range []int{1, 7, 1000, 1 << 20} {
				got := deliver(t, true, atMost, header)
				require.Len(t, got, 2, "read %d bytes at a time", atMost)
				d := got[0]
				if frame.Undecodable(d.Headers) == nil || d.ContentType != "text/plain" || d.DeliveryMode != 2 || d.MessageId != "id" {
					t.Errorf("delivery %+v", d)
				}
				if frame.Undecodable(got[1].Headers) != nil {
					t.Error("the next message counts as undecodable, too")
				}
			}
		})
	}
}

// If a publisher uses the guard's own header, its text gets into no log.
func TestForgedReasonIsNotRepeated(t *testing.T) {
	t.Parallel()
	err := frame.Undecodable(amqp.Table{frame.HeaderUndecodable: "secret"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

// Everything that the client can decode, up to its limits, passes unchanged, for any size of the reads.
func TestOthersGoThroughUntouched(t *testing.T) {
	t.Parallel()
	every := "\x01at\x01\x01bB1\x01cb1\x01ds12\x01eu12\x01fI1234\x01gi1234\x01hl12345678\x01if1234\x01jd12345678" +
		"\x01kD12345\x01lT12345678\x01mV\x01nS" + long("s") + "\x01ox" + long("x")
	var stream bytes.Buffer
	for _, table := range []string{
		"", every, "\x01aF" + long(every), nested("F", 32), nested("A", 32), many(8192), "\x01kA" + long(strings.Repeat("V", 8192)),
	} {
		stream.Write(method(1, 60, 60, "\x03tag"))
		stream.Write(frameOf(2, 1, contentHeader(flags, properties(table))))
		stream.Write(frameOf(3, 1, bytes.Repeat([]byte{2}, 5000)))
		stream.Write(frameOf(8, 0, nil))
	}
	for _, atMost := range []int{1, 3, 4096, 1 << 20} {
		if got := through(t, stream.Bytes(), atMost); !bytes.Equal(got, stream.Bytes()) {
			t.Errorf("changed, read %d bytes at a time", atMost)
		}
	}
}

// through returns a stream as the guard passes it on.
func through(t *testing.T, stream []byte, atMost int) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		_, _ = theirs.Write(stream)
		_ = theirs.Close()
	}()
	got, err := io.ReadAll(frame.Guarded(slowly{ours, atMost}))
	require.NoError(t, err)
	return got
}

//nolint:paralleltest // counts allocations
func TestUntouchedFramesAreNotCopied(t *testing.T) {
	stream := bytes.Repeat(append(method(1, 60, 60, "\x03tag"), frameOf(2, 1, contentHeader(flags, properties("\x01aI1234")))...), 20)
	conn := frame.Guarded(&endless{stream: stream})
	p := make([]byte, len(stream))
	if n := testing.AllocsPerRun(100, func() { _, _ = conn.Read(p) }); n > 0 {
		t.Errorf("%v allocations a read, want none", n)
	}
}

// endless repeats a stream.
type endless struct {
	net.Conn
	stream []byte
	at     int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.stream[e.at:])
	e.at = (e.at + n) % len(e.stream)
	return n, nil
}
