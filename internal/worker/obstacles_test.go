package worker_test

import (
	endian "encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// tune changes the limits that the broker offers to a connection.
func tune(frame []byte, change func(channelMax, frameMax []byte)) {
	const method, connection, tune = 1, 10, 30
	if p := frame[7:]; frame[0] == method && endian.BigEndian.Uint16(p) == connection && endian.BigEndian.Uint16(p[2:]) == tune {
		change(p[4:6], p[6:10])
	}
}

// The smallest frames that AMQP allows cut bodies into many pieces.
func TestSmallestFrames(t *testing.T) {
	t.Parallel()
	for _, frameMax := range []uint32{4096, 8192} {
		t.Run(strconv.Itoa(int(frameMax)), func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
			if frameMax < 8192 {
				p.Needs(t, brokertest.Release("< 4.1"))
			}
			ids := p.fillInbox(t, 100, func(i int) amqp.Publishing {
				return amqp.Publishing{Body: make([]byte, i*500), Headers: amqp.Table{"retry-queue": "orders.created"}}
			})
			r := p.workAs(t, p.throughProxy(t, &proxy{rewriteBack: func(frame []byte) {
				tune(frame, func(_, size []byte) { endian.BigEndian.PutUint32(size, frameMax) })
			}}), p.spec.Worker())
			if n := p.awaitAll(t, ids); n != 0 || r.Log.Count("msg=consuming") != 1 {
				t.Errorf("%d copies", n)
			}
		})
	}
}

// If a broker allows too few channels, the log says so. When the broker allows more, the worker resumes.
func TestTooFewChannels(t *testing.T) {
	t.Parallel()
	for _, channelMax := range []uint32{1, 2, 12} {
		t.Run(strconv.Itoa(int(channelMax)), func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
			var allowed atomic.Uint32
			allowed.Store(channelMax)
			r := p.workAs(t, p.throughProxy(t, &proxy{rewriteBack: func(frame []byte) {
				tune(frame, func(channels, _ []byte) { endian.BigEndian.PutUint16(channels, uint16(allowed.Load())) })
			}}), p.spec.Worker())
			r.Log.Await(t, fmt.Sprintf("the broker allows %d channels per connection, and the worker needs 13: raise channel_max", channelMax), 1)
			allowed.Store(13)
			p.retries(t)
		})
	}
}

// If a limit of connections is reached, the worker says so, and resumes when there is room.
func TestConnectionLimitIsReached(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"vhost", "user"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
			uri, limits := p.URI, p.Path("vhost-limits", "max-connections")
			if of == "user" {
				user, password := p.User(t, "", "^$", `^orders\.(retry|return|failed(\.route)?)$|^amq\.default$`, `^orders\.inbox$`)
				uri, limits = withUser(t, p.URI, user, password), "/api/user-limits/"+url.PathEscape(user)+"/max-connections"
			}
			ids := p.fillInbox(t, 100, toRetry)
			limit := 1 // for the first of two connections
			if of == "vhost" {
				limit++ // the test's own connection
			}
			p.set(t, "PUT", limits, map[string]any{"value": limit})
			r := p.workAs(t, uri, p.spec.Worker())
			r.Log.Await(t, "connection limit", 2)
			p.set(t, "DELETE", limits, nil)
			if n := p.awaitAll(t, ids); n != 0 {
				t.Errorf("%d copies", n)
			}
		})
	}
}

// slowly passes on the bytes of one side after a delay, and at this many bytes a second.
func slowly(to io.WriteCloser, from io.Reader, delay time.Duration, bytesPerSecond int) {
	type piece struct {
		data []byte
		at   time.Time
	}
	pieces := make(chan piece, 64)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 2048)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			pieces <- piece{data[:n], time.Now().Add(delay)}
		}
	}()
	defer func() { _ = to.Close() }()
	var free time.Time // when the line has sent all earlier bytes; a late wake-up costs no speed
	for p := range pieces {
		if free.Before(p.at) {
			free = p.at
		}
		time.Sleep(time.Until(free))
		if _, err := to.Write(p.data); err != nil {
			return
		}
		free = free.Add(time.Duration(len(p.data)) * time.Second / time.Duration(bytesPerSecond))
	}
}

// On a slow network, no message is given up or handled twice.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	const messages, delay, speed = 300, 50 * time.Millisecond, 128 << 10
	ids := p.fillInbox(t, messages, func(i int) amqp.Publishing {
		m := amqp.Publishing{Body: make([]byte, 1024), Headers: amqp.Table{"retry-queue": "orders.created"}}
		if i == messages/2 {
			m.Body = make([]byte, 1<<20)
		}
		return m
	})
	uri := brokertest.Between(t, p.URI, func(client, broker net.Conn) {
		go slowly(broker, client, delay, speed)
		slowly(client, broker, delay, speed)
	})
	r := p.workAs(t, uri, p.spec.Worker())
	seen := p.collect(t, "orders.created")
	seen.awaitAtLeast(t, len(ids))
	if n := r.Log.Count("msg=consuming"); n != 1 || seen.copies() != 0 {
		t.Errorf("%d sessions, %d copies", n, seen.copies())
	}
}

// A network that swallows everything is noticed by the heartbeat.
func TestSilentNetwork(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	var connections, silent atomic.Int64
	pass := func(number int64, to, from net.Conn) {
		data := make([]byte, 64<<10)
		for {
			n, err := from.Read(data)
			if err != nil {
				return
			}
			if number > silent.Load() {
				_, _ = to.Write(data[:n])
			}
		}
	}
	uri := brokertest.Between(t, p.URI, func(client, broker net.Conn) {
		number := connections.Add(1)
		go pass(number, broker, client)
		pass(number, client, broker)
	})
	r := p.workAs(t, uri, p.spec.Worker())
	p.retries(t)
	silent.Store(connections.Load())
	ids := p.fillInbox(t, 100, toRetry)
	r.Log.Await(t, "msg=consuming", 2)
	p.awaitAll(t, ids)
}

// smallFrames makes broker and worker agree on a frame_max, and keeps the size of the worker's largest frame.
func smallFrames(frameMax uint32, largest *atomic.Int64) *proxy {
	return &proxy{
		rewrite: func(frame []byte) {
			for n := int64(len(frame)); ; {
				before := largest.Load()
				if n <= before || largest.CompareAndSwap(before, n) {
					return
				}
			}
		},
		rewriteBack: func(frame []byte) {
			tune(frame, func(_, size []byte) { endian.BigEndian.PutUint32(size, frameMax) })
		},
	}
}

// Headers of all sizes up to the limit, for as many attempts as fill a history. If headers fit on the first attempt,
// they fit on all, together with the broker's additions. Otherwise, the worker leaves the message alone.
func TestAddedHeadersStayWithinASmallFrame(t *testing.T) {
	t.Parallel()
	const frameMax, attempts, first, last, step = 8192, 40, 5000, 7500, 250
	p := newPipeline(t, "orders", []string{"1ms"}, attempts, "orders.created")
	var largest atomic.Int64
	r := p.workAs(t, p.throughProxy(t, smallFrames(frameMax, &largest)), p.spec.Worker())
	p.consume(t, "orders.created", nil)
	sent := 0
	for size := first; size <= last; size += step {
		p.Publish(t, "", "orders.created", amqp.Publishing{Headers: amqp.Table{"k": strings.Repeat("x", size)}})
		sent++
	}
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), sent) })

	largestRetried, smallestLeft, trimmed := 0, frameMax, 0
	for range sent {
		d := p.await(t, p.names.FailedQueue())
		size := len(d.Headers["k"].(string))
		if d.Headers["dead-letter-reason"] == nil {
			smallestLeft = min(smallestLeft, size)
			if d.Headers["retry-count"] != nil {
				t.Errorf("headers of %d bytes are left to the broker after %v attempts", size, d.Headers["retry-count"])
			}
			continue
		}
		largestRetried = max(largestRetried, size)
		if d.Headers["dead-letter-reason"] != "exhausted" || d.Headers["retry-count"] != int64(attempts) {
			t.Errorf("headers of %d bytes: %v after %v attempts", size, d.Headers["dead-letter-reason"], d.Headers["retry-count"])
		}
		if history, _ := d.Headers["retry-history"].(string); strings.Count(history, "attempt") < 20 {
			trimmed++
		}
	}
	if largestRetried == 0 || largestRetried > smallestLeft || trimmed == 0 {
		t.Errorf("retried up to %d bytes, left to the broker from %d, %d histories trimmed", largestRetried, smallestLeft, trimmed)
	}
	if n := largest.Load(); n > frameMax || n < frameMax-1500 {
		t.Errorf("the largest frame has %d bytes, the limit is %d", n, frameMax)
	}
	require.Equal(t, 1, r.Log.Count("msg=consuming"))
	t.Logf("%d messages: retried up to %d bytes, left to the broker from %d; largest frame %d", sent, largestRetried, smallestLeft, largest.Load())
}

// A consumer's error text is cut to the available size.
func TestErrorTextsAreCutToASmallFrame(t *testing.T) {
	t.Parallel()
	const frameMax = 8192
	spec := newSpec(topology.Quorum, []string{"1ms"}, 3, "orders.created")
	p := newPipelineOf(t, spec)
	var largest atomic.Int64
	p.workAs(t, p.throughProxy(t, smallFrames(frameMax, &largest)), p.spec.Worker())
	p.Publish(t, "orders.dlx", "key", amqp.Publishing{Headers: amqp.Table{
		"retry-queue": "orders.created", "retry": "never", "k": strings.Repeat("x", 3350),
		"dead-letter-error": strings.Repeat("ü", 800), "dead-letter-exception": strings.Repeat("ü", 1500),
	}})
	failed := p.awaitFailed(t, "unrecoverable")
	text, exception := failed.Headers["dead-letter-error"].(string), failed.Headers["dead-letter-exception"].(string)
	if len(text) != 1600 || len(exception) == 0 || len(exception) < 2000 || len(exception) >= 3000 || failed.Headers["retry-history"] != nil {
		t.Errorf("%d bytes of error, %d of exception, history %v", len(text), len(exception), failed.Headers["retry-history"])
	}
	if n := largest.Load(); n > frameMax || n < frameMax-200 {
		t.Errorf("the largest frame has %d bytes, the limit is %d", n, frameMax)
	}
}
