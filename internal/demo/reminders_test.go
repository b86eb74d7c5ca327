package main

import (
	"io"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
)

func TestRemindersThatAreNotDueFail(t *testing.T) {
	t.Parallel()
	want := reminder{"reminder-2", time.Second}
	for name, c := range map[string]struct {
		id    string
		open  bool
		after time.Duration
		fails bool
	}{
		"another one": {"reminder-1", true, time.Second, true},
		"early":       {want.id, true, time.Second - time.Millisecond, true},
		"none":        {"", false, time.Second, true},
		"on time":     {want.id, true, time.Second, false},
		"late":        {want.id, true, time.Minute, false},
	} {
		d := amqp.Delivery{MessageId: c.id, Acknowledger: acknowledged{}}
		assert.Equal(t, c.fails, arrived(want, d, c.open, c.after, &output{writer: io.Discard}) != nil, name)
	}
}

// acknowledged accepts every acknowledgement, as a broker does.
type acknowledged struct{}

func (acknowledged) Ack(uint64, bool) error        { return nil }
func (acknowledged) Nack(uint64, bool, bool) error { return nil }
func (acknowledged) Reject(uint64, bool) error     { return nil }
