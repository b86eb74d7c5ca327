package session

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	spec "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

func TestExchangeOfFailedQueuesIsClosed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var o, alarmed obstacle
	o.shut(&amqp.Error{Code: amqp.NotFound}, now)
	o.shut(&amqp.Error{Code: amqp.AccessRefused}, now.Add(time.Second))
	for _, step := range []struct {
		after time.Duration
		want  deadletter.Detour
	}{
		{ParkingPatience - 1, ""},
		{ParkingPatience, deadletter.DetourForbidden},
		{ParkingPatience + parkingProbe, deadletter.DetourForbidden},
		{ParkingPatience + parkingProbe + 1, ""}, // tries again
		{ParkingPatience + parkingProbe + 2, deadletter.DetourForbidden},
	} {
		require.Equal(t, step.want, o.detour(alarm{}, now.Add(step.after)), step.after)
	}
	// Time during an alarm does not count.
	alarmed.shut(&amqp.Error{Code: amqp.NotFound}, now)
	require.Empty(t, alarmed.detour(alarm{clearedAt: now.Add(4 * time.Second)}, now.Add(ParkingPatience)), "during an alarm")
}

// If a queue refused the message, the exchange is there and open to this user.
func TestRefusalEndsADetour(t *testing.T) {
	t.Parallel()
	s, p := silent(t)
	f := s.Flow.(*Retrying)
	f.parking = obstacle{why: deadletter.DetourMissing, since: time.Now().Add(-time.Minute), nextProbe: time.Now()}
	v := deadletter.Verdict{Action: deadletter.Fail, Letter: deadletter.Letter{Queue: "orders.created"}}
	refused := f.config.Route(v.SetAside())
	s.assign(&lane{}, address{refused.Exchange, refused.Target})
	m := &message{verdict: f.sentBy(v), sent: publish{confirmation: answered(false)}}
	if err := s.proceed(p, m, m.verdict.nacked(m)); err != nil || f.parking != (obstacle{}) {
		t.Errorf("%+v, error %v", f.parking, err)
	}
}

// A message that waits for a closed channel leaves once it has another way. The rest stays, one at a time as before.
func TestWaitingMessagesAreAimedAgain(t *testing.T) {
	t.Parallel()
	s, f := detouring(t)
	own := s.assign(&lane{}, address{f.config.Names.FailedRouteExchange(), "orders.created"})
	failed := s.assign(&lane{}, address{exchange: f.config.Names.FailedExchange()})
	for _, queue := range []string{"", "orders.created"} {
		v := deadletter.Verdict{Action: deadletter.Fail, Letter: deadletter.Letter{Queue: queue}}
		require.NoError(t, s.publish(&message{verdict: f.decided(v)}))
	}
	own.isolation.left, failed.isolation.left = 10, 10
	for _, step := range []struct {
		since            time.Duration
		own, ownSuspects int
	}{{time.Second, 1, 10}, {time.Minute, 0, 9}} {
		f.parking = obstacle{why: deadletter.DetourMissing, since: time.Now().Add(-step.since)}
		require.NoError(t, s.aimWaiting())
		require.Equal(t, []int{step.own, step.ownSuspects, 10}, []int{len(own.waiting), own.isolation.left, failed.isolation.left}, step.since)
		require.Len(t, failed.waiting, 2-step.own, step.since)
	}
}

// While the failed queue is missing, or is perhaps not bound yet, no message is left to the broker.
func TestRejectionsWaitForTheFailedQueue(t *testing.T) {
	t.Parallel()
	var r rejections
	now := time.Now()
	for _, step := range []struct {
		after   time.Duration
		missing bool
		safe    bool
	}{
		{0, false, true},
		{time.Second, true, false},
		{20 * time.Second, false, false},
		{20*time.Second + bindingTime - time.Millisecond, false, false},
		{20*time.Second + bindingTime, false, true},
	} {
		at := now.Add(step.after)
		r.looked(step.missing, at)
		require.Equal(t, step.safe, r.safe(at), step.after)
	}
}

func TestRefusalsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r, now := refusals{log: slog.New(slog.NewTextHandler(&log, nil))}, time.Now()
	lines := func() int { return strings.Count(log.String(), "\n") }
	for i := range 100 {
		at := now.Add(time.Duration(i) * time.Second)
		r.accepted(at, "orders.failed", "") // a message that the full queue does not get
		r.refused(at, "orders.failed", "", setAside, "refused_queue", "orders.retry.0.refused")
	}
	if lines() != 1 || !strings.Contains(log.String(), "refused_queue=orders.retry.0.refused") {
		t.Errorf("log:\n%s", &log)
	}
	r.refused(now, "orders.failed", "a", setAside, "refused_queue", "orders.retry.0.refused")
	if lines() != 2 || !strings.Contains(log.String(), "queue=a") {
		t.Errorf("log of another obstruction:\n%s", &log)
	}
	for range 2 {
		r.accepted(now.Add(time.Hour), "orders.failed", "")
	}
	if lines() != 3 || !strings.Contains(log.String(), "take all messages again") {
		t.Errorf("log of the end:\n%s", &log)
	}
}

// Invented names of queues take no memory.
func TestManyRefusals(t *testing.T) {
	t.Parallel()
	r := refusals{log: slog.New(slog.DiscardHandler)}
	for i := range 2 * mostRefusing {
		r.refused(time.Now(), "orders.failed.route", string(rune(i)), setAside)
	}
	if n := len(r.last); n > mostRefusing {
		t.Errorf("%d remembered", n)
	}
}

// events returns the flow of a delayed exchange, and its log.
func events() (*Delaying, *bytes.Buffer) {
	var log bytes.Buffer
	e := delaying.NewExchange(spec.Worker{Version: 1, Name: "events", Vhost: "/", MaxDelay: "1h", Precision: "1s"})
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
	return NewDelaying(e, metrics.New("").Flow(e), slog.New(handler)), &log
}

// A message that a queue refused is kept only if it has no other way.
func TestRefusedMessageIsLoggedAsKept(t *testing.T) {
	t.Parallel()
	f, log := events()
	v := f.decided(delaying.Verdict{Action: delaying.Deliver})
	require.Equal(t, stepSetAside, v.nacked(&message{}))
	require.NotContains(t, log.String(), deferredRefused)
	require.Equal(t, stepImpede, v.nacked(&message{}))
	require.Contains(t, log.String(), deferredRefused)
}

// A parked message can be found by its trace, however it was parked.
func TestUndeliverableMessageIsLoggedWithItsTrace(t *testing.T) {
	t.Parallel()
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	_, orders := detouring(t)
	delays, log := events()
	orders.parked.log = delays.log
	for _, park := range []func(*amqp.Delivery, string, deadletter.Stamp) (Parked, Parked, error){orders.Park, delays.Park} {
		log.Reset()
		d := &amqp.Delivery{MessageId: "order-1", Headers: amqp.Table{"traceparent": trace}}
		parked, _, err := park(d, "a uuid", deadletter.Stamp{Now: time.Now(), PublishID: "1", FrameMax: 131_072})
		require.NoError(t, err)
		parked.Done()
		require.Contains(t, log.String(), "message_id=order-1 traceparent="+trace+"\n")
	}
}

func TestOnlyTraceContextIsLogged(t *testing.T) {
	t.Parallel()
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for name, test := range map[string]struct {
		header any
		want   string
	}{
		"valid":       {good, good},
		"absent":      {nil, ""},
		"number":      {int64(1), ""},
		"bytes":       {[]byte(good), ""},
		"upper case":  {strings.ToUpper(good), ""},
		"long":        {good + "-" + strings.Repeat("x", 1<<16), ""},
		"line break":  {good + "\n", ""},
		"other words": {"msg=\"message parked\" password=secret", ""},
	} {
		require.Equal(t, test.want, traceparent(amqp.Table{"traceparent": test.header}), name)
	}
}
