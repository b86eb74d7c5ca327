package brokertest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// Kinds of frames, and methods by class and method.
const (
	methodFrame      = 1
	frameEnd         = 0xce
	connectionStart  = 10<<16 | 10
	channelClose     = 20<<16 | 40
	channelCloseOK   = 20<<16 | 41
	exchangeDeclare  = 40<<16 | 10
	queueDeclare     = 50<<16 | 10
	passive          = 1
	accessRefused    = 403
	frameHeader      = 7
	protocolHeader   = 8
	methodArguments  = 4
	reservedArgument = 2
)

// RefusingLooks is the URI of a proxy that calls itself RabbitMQ 4.2.6, and refuses passive declarations as that release does with
// users who have no permission to configure.
func RefusingLooks(t testing.TB, uri string) string {
	t.Helper()
	return Between(t, uri, func(client, broker net.Conn) {
		x := &refuser{client: client, owed: map[uint16]int{}, closing: map[uint16]int{}}
		go func() {
			defer func() { _ = broker.Close() }()
			header := make([]byte, protocolHeader)
			if _, err := io.ReadFull(client, header); err == nil {
				_, _ = broker.Write(header)
				eachFrame(client, func(frame []byte) error { return x.fromClient(frame, broker) })
			}
		}()
		eachFrame(broker, x.fromBroker)
	})
}

// refuser is one connection of the proxy.
type refuser struct {
	mu     sync.Mutex
	client net.Conn
	// owed and closing count, by channel, the answers of client and broker to the proxy's own requests to close a channel.
	owed, closing map[uint16]int
}

// eachFrame passes frames until one side ends.
func eachFrame(from io.Reader, pass func(frame []byte) error) {
	for {
		header := make([]byte, frameHeader)
		if _, err := io.ReadFull(from, header); err != nil {
			return
		}
		rest := make([]byte, binary.BigEndian.Uint32(header[3:])+1)
		if _, err := io.ReadFull(from, rest); err != nil {
			return
		}
		if pass(slices.Concat(header, rest)) != nil {
			return
		}
	}
}

// method is a frame's method, 0 for another frame, with its channel and arguments.
func method(frame []byte) (id uint32, channel uint16, arguments []byte) {
	if frame[0] != methodFrame {
		return 0, 0, nil
	}
	payload := frame[frameHeader : len(frame)-1]
	return binary.BigEndian.Uint32(payload), binary.BigEndian.Uint16(frame[1:]), payload[methodArguments:]
}

// closeChannel is the frame of a channel.close about a method.
func closeChannel(channel uint16, code int, text string, about uint32) []byte {
	payload := binary.BigEndian.AppendUint32(nil, channelClose)
	payload = binary.BigEndian.AppendUint16(payload, uint16(code))
	payload = append(append(payload, byte(len(text))), text...)
	payload = binary.BigEndian.AppendUint32(payload, about)
	frame := binary.BigEndian.AppendUint16([]byte{methodFrame}, channel)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(payload)))
	return append(append(frame, payload...), frameEnd)
}

// fromClient refuses a passive declaration. It also has the broker close the channel, so that both sides agree.
func (x *refuser) fromClient(frame []byte, broker io.Writer) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	id, channel, arguments := method(frame)
	kind, isPassive := "", false
	switch id {
	case channelCloseOK:
		if x.owed[channel] > 0 {
			x.owed[channel]--
			return nil
		}
	case queueDeclare:
		kind, arguments = "queue", arguments[reservedArgument:]
		isPassive = arguments[1+int(arguments[0])]&passive != 0
	case exchangeDeclare:
		kind, arguments = "exchange", arguments[reservedArgument:]
		ofType := arguments[1+int(arguments[0]):]
		isPassive = ofType[1+int(ofType[0])]&passive != 0
	}
	if !isPassive {
		_, err := broker.Write(frame)
		return err
	}
	name := arguments[1 : 1+int(arguments[0])]
	x.owed[channel]++
	x.closing[channel]++
	if _, err := broker.Write(closeChannel(channel, 0, "", 0)); err != nil {
		return err
	}
	text := fmt.Sprintf("ACCESS_REFUSED - configure access to %s '%s' in vhost refused for user", kind, name)
	_, err := x.client.Write(closeChannel(channel, accessRefused, text, id))
	return err
}

// fromBroker changes the version, and keeps the answers to the proxy's own requests.
func (x *refuser) fromBroker(frame []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch id, channel, _ := method(frame); {
	case id == connectionStart:
		frame = withVersion(frame, "4.2.6")
	case id == channelCloseOK && x.closing[channel] > 0:
		x.closing[channel]--
		return nil
	}
	_, err := x.client.Write(frame)
	return err
}

// withVersion is the frame of a connection.start with another version among the broker's properties.
func withVersion(frame []byte, version string) []byte {
	const properties = frameHeader + methodArguments + 2 // behind the version of the protocol
	before, after, _ := bytes.Cut(frame, []byte("\x07versionS"))
	old := binary.BigEndian.Uint32(after)
	changed := binary.BigEndian.AppendUint32(append(bytes.Clone(before), "\x07versionS"...), uint32(len(version)))
	changed = append(append(changed, version...), after[4+old:]...)
	for _, length := range []int{3, properties} {
		n := binary.BigEndian.Uint32(changed[length:])
		binary.BigEndian.PutUint32(changed[length:], n+uint32(len(version))-old)
	}
	return changed
}
