package amqpconn

import (
	"io"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Whether the library notices first that the other side has hung up, or that it cannot read, is a matter of chance.
func TestHungUpSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	read := &amqp.Error{Code: amqp.FrameError, Reason: io.EOF.Error()}
	for uri, want := range map[string]string{"amqp://a": noAMQP, "amqps://a": noAMQPWithTLS} {
		parsed, err := ParseURI(uri)
		if err != nil {
			t.Fatal(err)
		}
		for _, hungUp := range []error{read, amqp.ErrClosed} {
			if got := explain(parsed, hungUp).Error(); !strings.Contains(got, want) || strings.Contains(got, "Exception") {
				t.Errorf("%s, %v: %s", uri, hungUp, got)
			}
		}
	}
}
