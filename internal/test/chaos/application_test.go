//go:build chaos

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// workQueues are the application's own.
var workQueues = []string{"created", "paid", "shipped"}

// application is who publishes and consumes, and calls the management API.
type application struct {
	*brokertest.Broker
	ledger *ledger
	nodes  []*node

	producers, consumers, management *proxy
}

func newApplication(t *testing.T) *application {
	t.Helper()
	a := &application{ledger: newLedger(), nodes: cluster(t)}
	amqp, management := addresses(a.nodes)
	a.producers, a.consumers = newProxy(t, "producers", amqp...), newProxy(t, "consumers", amqp...)
	a.management = newProxy(t, "management", management...)
	a.Broker = brokertest.New(t)
	a.Endpoint = "http://" + a.management.address
	for _, queue := range workQueues {
		a.DeclareQueue(t, queue, "quorum", nil)
	}
	return a
}

// uri is the way to the cluster through a proxy, without a vhost.
func (a *application) uri(p *proxy) string {
	return strings.Replace(a.URI, a.nodes[0].amqp, p.address, 1)
}

const (
	heartbeat = 10 * time.Second
	// reconnectAfter is how soon a client that lost its connection comes back.
	reconnectAfter = 200 * time.Millisecond
)

// always runs a client, each time that it loses its connection again, until the context is done.
func (a *application) always(ctx context.Context, p *proxy, client func(context.Context, *amqp.Connection) error) {
	for ctx.Err() == nil {
		if conn, err := a.connect(p); err == nil {
			// Both only say that the connection is lost.
			_ = client(ctx, conn)
			_ = conn.CloseDeadline(time.Now().Add(reconnectAfter))
		}
		pause(ctx.Done(), reconnectAfter)
	}
}

func (a *application) connect(p *proxy) (*amqp.Connection, error) {
	return amqp.DialConfig(a.uri(p), amqp.Config{Vhost: a.Vhost, Heartbeat: heartbeat, Dial: amqp.DefaultDial(heartbeat)})
}

// pause waits, and reports whether it was not over before.
func pause(over <-chan struct{}, d time.Duration) bool {
	select {
	case <-over:
		return false
	case <-time.After(d):
		return true
	}
}

// takeFrom calls handle with what comes to these queues, until the connection or the context ends.
func takeFrom(ctx context.Context, conn *amqp.Connection, queues []string, autoAck bool, handle func(queue string, d amqp.Delivery)) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(50, 0, false); err != nil {
		return err
	}
	var taking sync.WaitGroup
	defer taking.Wait()
	for _, queue := range queues {
		deliveries, err := ch.Consume(queue, "", autoAck, false, false, false, nil)
		if err != nil {
			return errors.Join(err, conn.Close())
		}
		taking.Go(func() {
			for d := range deliveries {
				handle(queue, d)
			}
		})
	}
	return nil
}

// consume takes messages from all work queues.
func (c *chaos) consume(ctx context.Context, conn *amqp.Connection) error {
	return takeFrom(ctx, conn, workQueues, false, c.handle)
}

// collectParked takes what is parked.
func (c *chaos) collectParked(ctx context.Context, conn *amqp.Connection) error {
	return takeFrom(ctx, conn, []string{c.parking()}, true, func(_ string, d amqp.Delivery) { c.collect(d) })
}

// lastConfirms is how long a producer that stops waits for the confirms of its messages.
const lastConfirms = 10 * time.Second

// produce publishes at this rate. What is not confirmed is not published again: each id is published
// once, so that every duplicate is somebody else's.
func (c *chaos) produce(name string, perSecond int) func(context.Context, *amqp.Connection) error {
	count := 0
	return func(ctx context.Context, conn *amqp.Connection) error {
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		if err := ch.Confirm(false); err != nil {
			return err
		}
		var settling sync.WaitGroup
		defer func() {
			late := time.AfterFunc(lastConfirms, func() { _ = ch.Close() }) // nothing is confirmed any more
			defer late.Stop()
			settling.Wait()
		}()
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			count++
			id := fmt.Sprintf("%s-%06d", name, count)
			exchange, key, m := c.message(id, count)
			confirm, err := ch.PublishWithDeferredConfirm(exchange, key, false, false, m)
			if err != nil {
				c.ledger.unanswered(id)
				return err
			}
			settling.Go(func() { // enters whether the broker has taken it
				if confirm.Wait() {
					c.ledger.confirm(id)
				} else {
					c.ledger.unanswered(id)
				}
			})
		}
	}
}

// queue is what the management API says of one. The counts are absent when nobody knows them.
type queue struct {
	Name           string   `json:"name"`
	State          string   `json:"state"`
	Leader         string   `json:"leader"`
	Members        []string `json:"members"`
	Online         []string `json:"online"`
	Messages       *int     `json:"messages"`
	MessagesHeld   int      `json:"messages_dlx"`
	Unacknowledged int      `json:"messages_unacknowledged"`
}

func (a *application) queues(ctx context.Context) (queues []queue, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Endpoint+a.Path("queues"), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth(a.Username, a.Password)
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return queues, json.NewDecoder(answer.Body).Decode(&queues)
}

// holding describes the queues that hold messages, or may do so.
func (a *application) holding(ctx context.Context) (map[string]string, error) {
	queues, err := a.queues(ctx)
	held := map[string]string{}
	for _, q := range queues {
		switch {
		case q.Messages == nil:
			held[q.Name] = "unknown"
		case *q.Messages+q.MessagesHeld > 0:
			held[q.Name] = fmt.Sprintf("%d, of which unacknowledged %d; dead letters held %d", *q.Messages, q.Unacknowledged, q.MessagesHeld)
		}
	}
	return held, err
}

// awaitMembers waits until every queue has a leader and all of its members.
func (a *application) awaitMembers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		queues, err := a.queues(ctx)
		lacking := map[string]string{}
		for _, q := range queues {
			if len(q.Online) < len(q.Members) || !slices.Contains(q.Online, q.Leader) || q.State != "running" {
				lacking[q.Name] = fmt.Sprintf("%s, %d of %d", q.State, len(q.Online), len(q.Members))
			}
		}
		if err == nil && len(lacking) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("queues without all of their members after two minutes: %v, %w", slices.Sorted(maps.Keys(lacking)), errors.Join(err, ctx.Err()))
		}
		pause(ctx.Done(), 300*time.Millisecond)
	}
}
