package worker_test

import (
	"context"
	endian "encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// silentQueue plays a queue without a majority. The broker neither confirms nor refuses publishes to the exchange with
// the key. If the queue's node is frozen, the broker does not answer later publishes on the channel either.
type silentQueue struct {
	exchange, key string
	frozen        bool

	mu        sync.Mutex
	published map[uint16]uint64 // by channel
	// settled are the tags that were answered or never will be.
	settled map[uint16]map[uint64]bool
	// hangs are the channels that answer nothing. behind are the messages on them for other queues.
	hangs  map[uint16]bool
	behind []string
}

func newSilentQueue(exchange, key string) *silentQueue {
	return &silentQueue{
		exchange: exchange, key: key,
		published: map[uint16]uint64{}, settled: map[uint16]map[uint64]bool{}, hangs: map[uint16]bool{},
	}
}

const frameHeader = 2

var goodID = regexp.MustCompile(`good\d+`)

const channelOpen = 20<<16 | 10

// fromWorker counts the publishes of a channel.
func (q *silentQueue) fromWorker(frame []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	channel := endian.BigEndian.Uint16(frame[1:])
	if id := string(goodID.Find(frame)); frame[0] == frameHeader && id != "" && q.hangs[channel] {
		q.behind = append(q.behind, id)
	}
	switch method(frame) {
	case channelOpen:
		q.published[channel], q.settled[channel] = 0, map[uint64]bool{}
		delete(q.hangs, channel)
	case basicPublish:
		q.published[channel]++
		exchange := frame[14 : 14+frame[13]]
		key := frame[14+len(exchange):]
		if string(exchange) == q.exchange && string(key[1:1+key[0]]) == q.key {
			q.settled[channel][q.published[channel]] = true
			q.hangs[channel] = q.frozen
		}
	}
}

func (q *silentQueue) toWorker(worker io.Writer) io.Writer { return mutedAnswers{worker, q} }

type mutedAnswers struct {
	io.Writer
	queue *silentQueue
}

// Write answers each message separately.
func (a mutedAnswers) Write(frame []byte) (int, error) {
	const nack = 120
	m := method(frame)
	if m != basicAck && m != 60<<16|nack {
		return a.Writer.Write(frame)
	}
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	channel, tag := endian.BigEndian.Uint16(frame[1:]), endian.BigEndian.Uint64(frame[11:])
	if a.queue.hangs[channel] {
		return len(frame), nil
	}
	settled, first := a.queue.settled[channel], tag
	if frame[19]&1 == 1 {
		first = 1
	}
	for ; first <= tag; first++ {
		if !settled[first] {
			settled[first] = true
			if _, err := a.Writer.Write(answer(channel, uint16(m&0xffff), first, 0)); err != nil {
				return 0, err
			}
		}
	}
	return len(frame), nil
}

// copiesIn counts the deliveries of each message.
func copiesIn(consumers ...*consumer) map[string]int {
	copies := map[string]int{}
	for _, c := range consumers {
		for _, d := range c.deliveries() {
			copies[d.MessageId]++
		}
	}
	return copies
}

// A silent queue holds up no other queue, and no queue gets more than two copies.
func TestQueueThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	const n = 400
	e := newExchange(t, "1m", "100ms", "good", "silent")
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "good", "silent")
	for _, c := range []struct {
		testVhost
		name, exchange, inbox string
		kept                  []string
		work                  func(t *testing.T, uri string) *running
		publish               func(t *testing.T, key, id string)
	}{
		{
			e.testVhost, "delivered at once", e.names.DeliverExchange(), e.names.Inbox(),
			[]string{"good", "silent"},
			func(t *testing.T, uri string) *running {
				t.Helper()
				return e.workOn(t, uri, exchangesOf(t, e.spec.Worker()), func(context.Context, *worker.Options) {})
			},
			func(t *testing.T, key, id string) {
				t.Helper()
				e.publish(t, key, 0, amqp.Publishing{MessageId: id})
			},
		},
		{
			p.testVhost, "parked", p.names.FailedRouteExchange(), p.names.Inbox(),
			[]string{p.names.FailedQueue()},
			func(t *testing.T, uri string) *running { t.Helper(); return p.workAs(t, uri, p.spec.Worker()) },
			func(t *testing.T, key, id string) {
				t.Helper()
				p.Publish(t, p.names.DeadLetterExchange(), key, amqp.Publishing{MessageId: id, Headers: amqp.Table{
					"retry-queue": key, "retry": "never",
				}})
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q := newSilentQueue(c.exchange, "silent")
			r := c.work(t, c.throughProxy(t, &proxy{rewrite: q.fromWorker, answers: q.toWorker}))
			var kept []*consumer
			for _, queue := range c.kept {
				kept = append(kept, c.consume(t, queue, acknowledge))
			}
			for i := range n {
				for _, key := range []string{"silent", "good"} {
					c.publish(t, key, fmt.Sprint(key, i))
				}
			}
			var copies map[string]int
			brokertest.Eventually(t, func() error {
				if copies = copiesIn(kept...); len(copies) < 2*n {
					return fmt.Errorf("%d of %d messages", len(copies), 2*n)
				}
				return c.countIs(t, c.inbox, 0)
			})
			doubled := 0
			for id, times := range copies {
				if times > 2 {
					t.Errorf("%s came %d times", id, times)
				}
				if times > 1 && strings.HasPrefix(id, "good") {
					doubled++
				}
			}
			// A busy machine can be as slow to confirm as a silent queue.
			if doubled > n/4 {
				t.Errorf("%d of %d messages for the queue that answers came twice", doubled, n)
			}
			if log := r.Log; log.Count("messages go to the refused queue") == 0 || log.Count("msg=consuming") != 1 {
				t.Errorf("log:\n%.2000s", log)
			}
		})
	}
}

// No message waits behind one for a queue on a frozen node, whose channel answers nothing.
func TestMessagesBesideAFrozenQueue(t *testing.T) {
	t.Parallel()
	const n = 200
	e := newExchange(t, "1m", "100ms", "good", "silent")
	q := newSilentQueue(e.names.DeliverExchange(), "silent")
	q.frozen = true
	x := &proxy{rewrite: q.fromWorker, answers: q.toWorker}
	e.workOn(t, e.throughProxy(t, x), exchangesOf(t, e.spec.Worker()), func(context.Context, *worker.Options) {})
	good, silent := e.consume(t, "good", acknowledge), e.consume(t, "silent", acknowledge)
	for i := range n {
		for _, key := range []string{"silent", "good"} {
			e.publish(t, key, 0, amqp.Publishing{MessageId: fmt.Sprint(key, i)})
		}
	}
	brokertest.Eventually(t, func() error {
		if have := len(copiesIn(good, silent)); have < 2*n {
			return fmt.Errorf("%d of %d messages", have, 2*n)
		}
		return e.countIs(t, e.names.Inbox(), 0)
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	require.Empty(t, q.behind)
	require.NotEmpty(t, q.settled)
}

// A cluster that elects a leader nacks some messages before it has answered earlier ones, and then acks those in one.
// Measured with RabbitMQ 3.10, where it lost 13 of 63,000 messages.
func TestNackBeforeAnAckOfSeveralIsANack(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"1h"}, 3, "orders.created")
	var nacks overtakingNacks
	r := p.workAs(t, p.throughProxy(t, &proxy{answers: nacks.before}), p.spec.Worker())
	const messages = 300
	p.fillInbox(t, messages, toRetry)
	// The inbox is no good for this, since its count can be the one before it was filled.
	brokertest.Eventually(t, func() error { return p.countIs(t, "orders.retry.1h", messages+nacks.count()) })
	r.stop(t)
	n := nacks.count()
	if n == 0 {
		t.Fatal("the broker answered every message alone")
	}
	// The broker has kept the messages that the proxy reports as refused.
	brokertest.Eventually(t, func() error { return p.countIs(t, "orders.retry.1h", messages+n) })
}

// overtakingNacks answers in the broker's place. It nacks the last of several messages, and then acks all of them,
// which counts for the others.
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

// answer builds a basic.ack or basic.nack.
func answer(channel, method uint16, tag uint64, multiple byte) []byte {
	frame := endian.BigEndian.AppendUint16([]byte{1}, channel)
	frame = endian.BigEndian.AppendUint32(frame, 13)
	frame = endian.BigEndian.AppendUint16(frame, 60)
	frame = endian.BigEndian.AppendUint16(frame, method)
	frame = endian.BigEndian.AppendUint64(frame, tag)
	return append(frame, multiple, 0xce)
}
