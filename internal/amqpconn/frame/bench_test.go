package frame_test

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
)

// BenchmarkRead measures a delivery of 1 KiB that was rejected once, on its way to the client, with and without the
// guard, which also buffers what it reads.
func BenchmarkRead(b *testing.B) {
	death := "\x05countl12345678" + "\x08exchangeS" + long("orders") + "\x05queueS" + long("orders.created") +
		"\x06reasonS" + long("rejected") + "\x0crouting-keysA" + long("S"+long("orders.created")) + "\x04timeT12345678"
	table := "\x07x-deathA" + long("F"+long(death)) + "\x0btraceparentS" + long(strings.Repeat("0", 55))
	delivery := bytes.Join([][]byte{
		method(1, 60, 60, "\x03tag"), frameOf(2, 1, contentHeader(flags, properties(table))), frameOf(3, 1, make([]byte, 1024)),
	}, nil)
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"bare":    func(c net.Conn) net.Conn { return c },
		"guarded": func(c net.Conn) net.Conn { return frame.Guarded(c) },
	} {
		b.Run(name, func(b *testing.B) {
			conn := wrap(&endless{stream: bytes.Repeat(delivery, 64)})
			buffer := make([]byte, 4096) // as the client reads
			b.SetBytes(int64(len(delivery)))
			b.ReportAllocs()
			for left := 0; b.Loop(); left -= len(delivery) {
				for left < len(delivery) {
					n, err := conn.Read(buffer)
					if err != nil {
						b.Fatal(err)
					}
					left += n
				}
			}
		})
	}
}
