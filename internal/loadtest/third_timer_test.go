//go:build load

package loadtest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// setting is what a consumer does with a message that fails: the guide "Which engine" has these three.
type setting int32

const (
	nack   setting = iota // what worker and consumer need
	hold                  // harmless for all
	reject                // what native needs
)

var settingOf = map[string]setting{"worker": nack, "consumer": nack, "native": reject}

// thirdTime is the attempt that succeeds, and the last one.
const thirdTime = 3

// held is how long a consumer holds a message that failed.
const held = time.Second

// outage is how long one message in ten fails, however often it is delivered: what comes back at once uses up its attempts.
const outage = 1500 * time.Millisecond

// thirdTimer is a consumer for which messages fail twice.
type thirdTimer struct {
	*load

	ch      *amqp.Channel
	queue   string
	setting atomic.Int32
}

func (l *load) newThirdTimer(t *testing.T, queue string, s setting) *thirdTimer {
	t.Helper()
	ch, err := l.Dial(t).Channel()
	if err == nil {
		err = ch.Qos(3*perSecond, 0, false) // more than fail while one is held
	}
	require.NoError(t, err)
	c := &thirdTimer{load: l, ch: ch, queue: queue}
	c.setting.Store(int32(s))
	return c
}

func (c *thirdTimer) start(t *testing.T) {
	t.Helper()
	deliveries, err := c.ch.Consume(c.queue, "", false, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for d := range deliveries {
			c.handle(t, d)
		}
	}()
}

func (c *thirdTimer) handle(t *testing.T, d amqp.Delivery) {
	if c.fails(d.MessageId) {
		c.fail(t, d)
		return
	}
	if c.check(t, d, d.Ack(false)) {
		c.ledger.with(func() { c.ledger.processed[d.MessageId]++ })
	}
}

// fails decides by how often the message was delivered or, for one in ten, by how long ago that began.
func (c *thirdTimer) fails(id string) (fails bool) {
	var number int
	_, _ = fmt.Sscanf(id, "%06d", &number)
	c.ledger.with(func() {
		c.ledger.delivered[id]++
		if c.ledger.delivered[id] == 1 {
			c.ledger.first[id] = time.Now()
		}
		fails = c.ledger.delivered[id] < thirdTime
		if number%10 == 0 {
			fails = time.Since(c.ledger.first[id]) < outage
		}
		if fails {
			c.ledger.rejections++
		}
	})
	return fails
}

func (c *thirdTimer) fail(t *testing.T, d amqp.Delivery) {
	switch setting(c.setting.Load()) {
	case nack:
		if attempt(d) >= thirdTime {
			t.Errorf("%s: a consumer that counts would park it: %v", d.MessageId, d.Headers)
		}
		c.check(t, d, d.Nack(false, false))
	case hold:
		time.AfterFunc(held, func() { c.check(t, d, d.Nack(false, true)) })
	case reject:
		c.check(t, d, d.Reject(true))
	}
}

// attempt is which one a delivery is, by what the broker has noted: consumers that count read it like this.
func attempt(d amqp.Delivery) int64 {
	deaths, _ := d.Headers["x-death"].([]any)
	for _, each := range deaths {
		death, _ := each.(amqp.Table)
		if count, ok := death["count"].(int64); ok && death["queue"] == "moving" && death["reason"] == "rejected" {
			return count + 1
		}
	}
	return 1
}

// check reports what a call failed with, unless the test has ended.
func (c *thirdTimer) check(t *testing.T, d amqp.Delivery, err error) bool {
	if err != nil && t.Context().Err() == nil {
		t.Errorf("%s: %v", d.MessageId, err)
	}
	return err == nil
}
