package amqpconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
)

// What to do about an address that does not answer as it should.
const (
	noAMQP = "nothing there speaks AMQP without TLS: use the AMQP port, 5672, or amqps:// at a port with TLS, such as 5671; " +
		"15672 and 15671 are the management API's"
	noAMQPWithTLS = "the port has TLS, but nothing there speaks AMQP: use the AMQP port with TLS, such as 5671; 15671 is the management API's"
	stalled       = "the port accepts connections, but the AMQP handshake did not end within %s: " +
		"the broker is overloaded or suspended, or the port belongs to another program"
	noTLS = "there is no TLS at this port: write amqp://, or use the port with TLS, such as 5671"
)

// explain adds what to do to an error of connecting, which came after that time.
func explain(uri URI, err error, after time.Duration) error {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		return fmt.Errorf("%w; %s", err, noTLS)
	}
	if end := endOfReading(err); end != nil {
		err = end
		if after >= uri.connectTimeout {
			return fmt.Errorf(stalled, uri.connectTimeout)
		}
		if uri.tls == nil {
			return fmt.Errorf("%w; %s", err, noAMQP)
		}
		if err.Error() == io.EOF.Error() {
			return fmt.Errorf("%w; %s", err, noAMQPWithTLS)
		}
	}
	if remedy := certificates.Remedy(err); remedy != "" {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}

// endOfReading is what went wrong while the library read, nil if something else did. It reports that as a framing error of its
// own, code 501, around the text of the error; or that the connection is closed, if it has noticed that before.
func endOfReading(err error) error {
	if errors.Is(err, amqp.ErrClosed) {
		return io.EOF
	}
	var reading *amqp.Error
	if errors.As(err, &reading) && reading.Code == amqp.FrameError && !reading.Server {
		return errors.New(reading.Reason)
	}
	return nil
}
