package amqpconn

import (
	"bytes"
	endian "encoding/binary"
	"net"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
)

// Product is what the broker calls itself.
func Product(conn *amqp.Connection) string {
	name, _ := conn.Properties["product"].(string)
	return name
}

// otherThanRabbitMQ is an error if the broker is certainly another one, which may never answer what it is asked next. It has
// said so even where it refuses the connection, unless there is none.
func otherThanRabbitMQ(conn *amqp.Connection) error {
	if conn == nil || !product.IsOther(Product(conn)) {
		return nil
	}
	version, _ := conn.Properties["version"].(string)
	return &product.OtherError{Found: strings.TrimSpace(Product(conn) + " " + version)}
}

// otherTimeout bounds the handshake with a broker that is not RabbitMQ. OtterMQ neither closes a connection that it refuses, nor
// says so.
const otherTimeout = 3 * time.Second

// greeted is a connection that hears what the broker calls itself: the library tells it only after the handshake.
type greeted struct {
	net.Conn
	heard bool
}

// Read also shortens the time for the handshake. The library has no time limit after it.
func (g *greeted) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if n > 0 && !g.heard {
		g.heard = true
		if product.IsOther(productIn(p[:n])) {
			_ = g.SetDeadline(time.Now().Add(otherTimeout)) // an error is that of the next read, too
		}
	}
	return n, err
}

// productIn is the product in the server properties of a connection.start, "" if that is not there as a whole.
func productIn(start []byte) string {
	const sizeBytes = 4
	_, name, _ := bytes.Cut(start, []byte("\x07productS"))
	if len(name) < sizeBytes {
		return ""
	}
	size := int(endian.BigEndian.Uint32(name))
	name = name[sizeBytes:]
	return string(name[:min(size, len(name))])
}
