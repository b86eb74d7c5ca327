package amqp10

import (
	"bytes"
	"encoding/binary"
	"net"
)

// unwrapping is a network connection that sends the data of each message as the message itself. A message must fit one frame.
type unwrapping struct{ net.Conn }

// Write sends a frame. The client writes one frame at a time.
func (c unwrapping) Write(frame []byte) (int, error) {
	const head, performative = 8, 3
	if len(frame) <= head || !bytes.HasPrefix(frame[head:], []byte{0x00, 0x53, 0x14}) {
		return c.Conn.Write(frame)
	}
	list := frame[head+performative:]
	size := 0
	switch list[0] {
	case 0xc0:
		size = 2 + int(list[1])
	case 0xd0:
		size = 5 + int(binary.BigEndian.Uint32(list[1:]))
	}
	payload := list[size:]
	if size == 0 || !bytes.HasPrefix(payload, []byte{0x00, 0x53, 0x75}) {
		return 0, errFrame
	}
	sizes := map[byte]int{0xa0: 1, 0xb0: 4}
	raw := payload[performative+1+sizes[payload[performative]]:]
	unwrapped := append(bytes.Clone(frame[:len(frame)-len(payload)]), raw...)
	binary.BigEndian.PutUint32(unwrapped, uint32(len(unwrapped)))
	if _, err := c.Conn.Write(unwrapped); err != nil {
		return 0, err
	}
	return len(frame), nil
}
