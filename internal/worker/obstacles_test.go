package worker_test

import (
	endian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// tune changes what the broker offers to a connection.
func tune(frame []byte, change func(channelMax, frameMax []byte)) {
	const method, connection, tune = 1, 10, 30
	if p := frame[7:]; frame[0] == method && endian.BigEndian.Uint16(p) == connection && endian.BigEndian.Uint16(p[2:]) == tune {
		change(p[4:6], p[6:10])
	}
}

// The smallest frames that AMQP allows cut bodies in many pieces.
func TestSmallestFrames(t *testing.T) {
	t.Parallel()
	for _, frameMax := range []uint32{4096, 8192} {
		t.Run(strconv.Itoa(int(frameMax)), func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
			if frameMax < 8192 && p.VersionAtLeast("4.1") {
				t.Skipf("RabbitMQ %s allows no smaller frames than 8192 bytes", p.Version)
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

// A broker that allows too few channels is named, and the worker resumes when it allows more.
func TestTooFewChannels(t *testing.T) {
	t.Parallel()
	for _, channelMax := range []uint32{1, 2, 44} {
		t.Run(strconv.Itoa(int(channelMax)), func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
			var allowed atomic.Uint32
			allowed.Store(channelMax)
			r := p.workAs(t, p.throughProxy(t, &proxy{rewriteBack: func(frame []byte) {
				tune(frame, func(channels, _ []byte) { endian.BigEndian.PutUint16(channels, uint16(allowed.Load())) })
			}}), p.spec.Worker())
			r.Log.Await(t, fmt.Sprintf("the broker allows %d channels per connection, and the worker needs 45: raise channel_max", channelMax), 1)
			allowed.Store(45)
			p.retries(t)
		})
	}
}

// The worker finds a limit of connections reached, says so, and resumes when there is room.
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
			ids := p.fillInbox(t, 100, toCreated)
			limit := 1 // for the first of two connections
			if of == "vhost" {
				limit++ // the test's own
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

// toCreated is a message that goes back to orders.created.
func toCreated(int) amqp.Publishing {
	return amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}}
}

// slowly passes on what one side sends, a while later, and so many bytes a second.
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
	var free time.Time // when the line has sent what came before; a late wake-up costs no speed
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

// Nothing is given up or handled twice because the network is slow.
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

// A network that swallows everything, without a word, is noticed by the heartbeat.
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
	ids := p.fillInbox(t, 100, toCreated)
	brokertest.Eventually(t, func() error {
		if r.Log.Count("msg=consuming") < 2 {
			return errors.New("nothing is noticed")
		}
		return nil
	})
	p.awaitAll(t, ids)
}
