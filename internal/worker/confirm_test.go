package worker_test

import (
	endian "encoding/binary"
	"io"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// A cluster that elects a leader nacks some messages before it has answered those before them, and then
// acks those in one: measured with RabbitMQ 3.10, where it lost 13 of 63,000 messages.
func TestNackBeforeAnAckOfSeveralIsANack(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"1h"}, 3, "orders.created")
	var nacks overtakingNacks
	r := p.workAs(t, p.throughProxy(t, &proxy{answers: nacks.before}), p.spec.Worker())
	const messages = 300
	p.fillInbox(t, messages, func(int) amqp.Publishing {
		return amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}}
	})
	// Not the inbox: its count may be that of the time before it was filled.
	brokertest.Eventually(t, func() error { return p.countIs(t, "orders.retry.1h", messages+nacks.count()) })
	r.stop(t)
	n := nacks.count()
	if n == 0 {
		t.Fatal("the broker answered every message alone")
	}
	// The broker has kept what the proxy says it refused.
	brokertest.Eventually(t, func() error { return p.countIs(t, "orders.retry.1h", messages+n) })
}

// overtakingNacks answers in the place of the broker: the last of several messages with a nack, and then
// all with an ack, which holds for the others.
type overtakingNacks struct {
	mu    sync.Mutex
	nacks int
}

func (o *overtakingNacks) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.nacks
}

func (o *overtakingNacks) before(worker io.Writer) io.Writer {
	return &answers{Writer: worker, nacks: o, acked: map[uint16]uint64{}, answered: map[uint16]uint64{}}
}

// answers collects the acks of a connection for a moment. The tags are the last ones of each channel.
type answers struct {
	io.Writer
	nacks           *overtakingNacks
	acked, answered map[uint16]uint64
}

func (a *answers) Write(frame []byte) (int, error) {
	const methodFrame, basic, ack = 1, 60, 80
	if len(frame) < 21 || frame[0] != methodFrame || endian.BigEndian.Uint16(frame[7:]) != basic || endian.BigEndian.Uint16(frame[9:]) != ack {
		return a.Writer.Write(frame)
	}
	a.nacks.mu.Lock()
	defer a.nacks.mu.Unlock()
	channel := endian.BigEndian.Uint16(frame[1:])
	if a.acked[channel] == a.answered[channel] {
		time.AfterFunc(50*time.Millisecond, func() { a.answer(channel) })
	}
	a.acked[channel] = max(a.acked[channel], endian.BigEndian.Uint64(frame[11:]))
	return len(frame), nil
}

func (a *answers) answer(channel uint16) {
	a.nacks.mu.Lock()
	defer a.nacks.mu.Unlock()
	last := a.acked[channel]
	if last-a.answered[channel] > 1 {
		_, _ = a.Writer.Write(answer(channel, 120, last, 0))
		a.nacks.nacks++
	}
	_, _ = a.Writer.Write(answer(channel, 80, last, 1))
	a.answered[channel] = last
}

// answer is a basic.ack or basic.nack.
func answer(channel, method uint16, tag uint64, multiple byte) []byte {
	frame := endian.BigEndian.AppendUint16([]byte{1}, channel)
	frame = endian.BigEndian.AppendUint32(frame, 13)
	frame = endian.BigEndian.AppendUint16(frame, 60)
	frame = endian.BigEndian.AppendUint16(frame, method)
	frame = endian.BigEndian.AppendUint64(frame, tag)
	return append(frame, multiple, 0xce)
}
