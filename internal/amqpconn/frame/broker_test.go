package frame_test

import (
	"bytes"
	endian "encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
)

const frameMax = 131_072

// slowly hands out a few bytes at a time.
type slowly struct {
	net.Conn
	atMost int
}

func (s slowly) Read(p []byte) (int, error) { return s.Conn.Read(p[:min(len(p), s.atMost)]) }

// deliver makes the real client consume from a connection with these content headers, and then one without properties.
// It returns the deliveries.
func deliver(t *testing.T, guarded bool, atMost int, payloads ...[]byte) []amqp.Delivery {
	t.Helper()
	ours, theirs := net.Pipe()
	go serve(theirs, append(payloads, contentHeader(0, nil)))
	var conn net.Conn = slowly{ours, atMost}
	watch := frame.Guarded(conn)
	if guarded {
		conn = watch
	}
	client, err := amqp.Open(conn, amqp.Config{SASL: []amqp.Authentication{&amqp.ExternalAuth{}}, Heartbeat: time.Hour, Locale: "en_US"})
	require.NoError(t, err)
	defer func() { _ = ours.Close() }()
	watch.SetFrameMax(uint32(client.Config.FrameSize))
	channel, err := client.Channel()
	require.NoError(t, err)
	deliveries, err := channel.Consume("queue", "tag", true, false, false, false, nil)
	require.NoError(t, err)
	defer time.AfterFunc(20*time.Second, func() { _ = ours.Close() }).Stop()
	var got []amqp.Delivery
	for d := range deliveries {
		if got = append(got, d); len(got) > len(payloads) {
			break
		}
	}
	return got
}

// serve plays just enough of a broker to deliver messages.
func serve(conn net.Conn, payloads [][]byte) {
	defer func() { _ = conn.Close() }()
	answers := map[uint32][]byte{
		10<<16 | 11: method(0, 10, 30, "\x07\xff\x00\x02\x00\x00\x00\x00"), // start-ok: tune
		10<<16 | 40: method(0, 10, 41, "\x00"),                             // open: open-ok
		20<<16 | 10: method(1, 20, 11, "\x00\x00\x00\x00"),
		60<<16 | 20: append(method(1, 60, 21, "\x03tag"), deliveries(payloads)...),
	}
	if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil {
		return
	}
	answer := method(0, 10, 10, "\x00\x09\x00\x00\x00\x00\x00\x00\x00\x08EXTERNAL\x00\x00\x00\x05en_US")
	for {
		if _, err := conn.Write(answer); err != nil {
			return
		}
		head := make([]byte, 7)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		rest := make([]byte, endian.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(conn, rest); err != nil {
			return
		}
		answer = nil
		if head[0] == 1 {
			answer = answers[endian.BigEndian.Uint32(rest)]
		}
	}
}

func deliveries(payloads [][]byte) []byte {
	var all bytes.Buffer
	for i, payload := range payloads {
		all.Write(method(1, 60, 60, "\x03tag"+string(endian.BigEndian.AppendUint64(nil, uint64(i)+1))+"\x00\x00\x03key"))
		all.Write(frameOf(2, 1, payload))
	}
	return all.Bytes()
}

func method(channel, class, id uint16, arguments string) []byte {
	payload := endian.BigEndian.AppendUint16(nil, class)
	payload = endian.BigEndian.AppendUint16(payload, id)
	return frameOf(1, channel, append(payload, arguments...))
}

func frameOf(kind byte, channel uint16, payload []byte) []byte {
	f := endian.BigEndian.AppendUint16([]byte{kind}, channel)
	f = endian.BigEndian.AppendUint32(f, uint32(len(payload)))
	return append(append(f, payload...), 0xce)
}

// contentHeader returns the content header of a message without a body.
func contentHeader(flags uint16, properties []byte) []byte {
	payload := append([]byte{0, 60}, make([]byte, 10)...)
	return append(endian.BigEndian.AppendUint16(payload, flags), properties...)
}
