package verbatim_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/verbatim"
)

// frame returns a frame of AMQP 1.0 with a size of its own.
func frame(kind byte, body ...[]byte) []byte {
	content := bytes.Join(body, nil)
	head := binary.BigEndian.AppendUint32(nil, uint32(8+len(content)))
	return append(append(head, 2, kind, 0, 1), content...)
}

// received returns the bytes that a client reads when a broker sends these.
func received(sent []byte) ([]byte, error) {
	client, broker := net.Pipe()
	go func() {
		_, _ = broker.Write(sent)
		_ = broker.Close()
	}()
	return io.ReadAll(verbatim.New(client))
}

func TestMessagesBecomeData(t *testing.T) {
	t.Parallel()
	list := map[string][]byte{
		"empty": {0x45}, "short": {0xc0, 3, 2, 0x43, 0x40}, "long": {0xd0, 0, 0, 0, 6, 0, 0, 0, 2, 0x43, 0x40},
	}
	transfer, data := []byte{0, 0x53, 0x14}, []byte{0, 0x53, 0x75, 0xb0, 0, 0, 0, 2}
	for name, l := range list {
		got, err := received(frame(0, transfer, l, []byte("ab")))
		if want := frame(0, transfer, l, data, []byte("ab")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x: %v", name, got, want, err)
		}
	}
}

func TestAllElseStaysAsItIs(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string][]byte{
		"protocol header":      []byte("AMQP\x03\x01\x00\x00"),
		"heartbeat":            frame(0),
		"SASL":                 frame(1, []byte{0, 0x53, 0x14, 0x45, 'a'}),
		"another performative": frame(0, []byte{0, 0x53, 0x13, 0x45}),
		"an empty transfer":    frame(0, []byte{0, 0x53, 0x14, 0x45}),
	} {
		if got, err := received(sent); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%s: %x, want %x: %v", name, got, sent, err)
		}
	}
}

func TestMalformedFrames(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string][]byte{
		"too small":    {0, 0, 0, 7, 2, 0, 0, 0},
		"too large":    {1, 0, 0, 0, 2, 0, 0, 0},
		"body outside": {0, 0, 0, 8, 3, 0, 0, 0},
		"cut off":      frame(0, []byte("abc"))[:10],
		"no list":      frame(0, []byte{0, 0x53, 0x14, 0x40}),
		"list outside": frame(0, []byte{0, 0x53, 0x14, 0xc0, 5, 0}),
		"no list size": frame(0, []byte{0, 0x53, 0x14, 0xd0, 0}),
	} {
		if got, err := received(sent); err == nil {
			t.Errorf("%s: %x", name, got)
		}
	}
}
