package session

import (
	"log/slog"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

const short, medium, long = time.Second, 5 * time.Second, 30 * time.Second

// detouring returns a session of a pipeline with these delays.
func detouring(t *testing.T, delays ...string) (*Session, *Retrying) {
	t.Helper()
	if len(delays) == 0 {
		delays = []string{"1s", "5s", "30s"}
	}
	spec := deadletter.NewPipeline(pipeline.Worker{Version: 1, Name: "orders", Vhost: "/", Delays: delays, MaxAttempts: 9})
	log := slog.New(slog.DiscardHandler)
	f := NewRetrying(spec, time.Hour, metrics.New("").Flow(spec), log)
	s := &Session{
		Settings: Settings{Flow: f, Log: log, Patience: new(Patience)},
		watch:    f.Watch(),
		lanes:    lanes{all: map[address]*lane{}, most: mostLanes},
		inbox:    inbox{inflow: &frame.Gate{}},
	}
	return s, f
}

// sentBy returns a verdict that the message was also published by.
func (f *Retrying) sentBy(v deadletter.Verdict) *retried {
	return &retried{Retrying: f, Verdict: v, sent: v}
}

func retry(delay time.Duration) deadletter.Verdict {
	return deadletter.Verdict{Action: deadletter.Retry, Delay: delay}
}

func TestDetour(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		shut          []time.Duration
		delay, wanted time.Duration
	}{
		"all answer":           {nil, medium, medium},
		"another is shut":      {[]time.Duration{short}, medium, medium},
		"the next longer one":  {[]time.Duration{medium}, medium, long},
		"the one after that":   {[]time.Duration{short, medium}, short, long},
		"then a shorter one":   {[]time.Duration{long}, long, medium},
		"none answers":         {[]time.Duration{short, medium, long}, medium, medium},
		"the longest of three": {[]time.Duration{medium, long}, medium, short},
	}
	for name, test := range tests {
		_, f := detouring(t)
		for _, delay := range test.shut {
			f.detours.avoid(f.config, delay, time.Now().Add(probePeriod))
		}
		if got := f.detours.around(f.config, retry(test.delay), time.Now()); got.Action != deadletter.Retry || got.Delay != test.wanted {
			t.Errorf("%s: %+v, want %s", name, got, test.wanted)
		}
	}
}

// A message is late rather than back at once, which would use up its attempts.
func TestNoDetourWithoutADelay(t *testing.T) {
	t.Parallel()
	_, f := detouring(t, "0s", "5s")
	f.detours.avoid(f.config, medium, time.Now().Add(time.Hour))
	if got := f.detours.around(f.config, retry(medium), time.Now()); got.Delay != medium {
		t.Errorf("%+v", got)
	}
}

// Messages without a wait do not go through the retry exchange.
func TestNoDetourForOthers(t *testing.T) {
	t.Parallel()
	_, f := detouring(t)
	f.detours.avoid(f.config, 0, time.Now())
	for _, v := range []deadletter.Verdict{retry(0), {Action: deadletter.Rescue}, {Action: deadletter.Fail}} {
		if got := f.detours.around(f.config, v, time.Now()); got.Action != v.Action || got.Delay != v.Delay {
			t.Errorf("%+v became %+v", v, got)
		}
	}
}

func TestOneMessageTriesADelayThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := detours{avoided: map[time.Duration]time.Time{short: now.Add(probePeriod)}}
	later := now.Add(probePeriod + time.Second)
	for i, test := range []struct {
		at   time.Time
		want bool
	}{{now, true}, {later, false}, {later, true}, {later.Add(probePeriod + time.Second), false}} {
		require.Equal(t, test.want, d.avoids(short, test.at), i)
	}
}

func TestDelayIsAvoidedWhenItsQueueIsSilent(t *testing.T) {
	t.Parallel()
	now := time.Now()
	const never = time.Hour
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	tests := map[string]struct {
		unblocked, sent, heard time.Duration
		closed, want           bool
	}{
		"a moment":                         {unblocked: never, sent: 14 * time.Second, heard: time.Second},
		"longer, and later ones are taken": {unblocked: never, sent: 16 * time.Second, heard: time.Second, want: true},
		"longer, and none is taken":        {unblocked: never, sent: 16 * time.Second, heard: never},
		"longer, after one that is taken":  {unblocked: never, sent: 16 * time.Second, heard: 17 * time.Second},
		"the broker hangs at it":           {unblocked: never, sent: 76 * time.Second, heard: never, want: true},
		"longer, but blocked until now":    {unblocked: time.Second, sent: 16 * time.Second, heard: time.Second},
		"the channel is closed":            {unblocked: never, sent: time.Minute, heard: time.Second, closed: true},
	}
	for name, test := range tests {
		s, f := detouring(t)
		m := &message{verdict: f.sentBy(retry(medium)), sent: publish{tag: 1, at: ago(test.sent), confirmation: answered(false)}}
		if test.closed {
			m.sent.tag = 0
		}
		s.lanes.heardOf = ago(test.heard)
		s.lanes.all[address{"orders.retry", "medium"}] = &lane{outstanding: []*message{m}}
		silent := f.detours.avoidSilent(f.config, s.lanes, alarm{clearedAt: ago(test.unblocked)}, now)
		if _, got := f.detours.avoided[medium]; got != test.want || (len(silent) > 0) != (test.want && test.heard == time.Second) {
			t.Errorf("%s: %t, %v", name, got, silent)
		}
		if f.detours.around(f.config, retry(medium), now).Delay == medium == test.want {
			t.Errorf("%s: the next message takes the wrong way", name)
		}
	}
}

func TestDelayIsAvoidedWhenItsQueueRefuses(t *testing.T) {
	t.Parallel()
	_, f := detouring(t)
	now := time.Now()
	f.detours.refused(retry(short), now)
	f.detours.refused(retry(medium), now)
	f.detours.refused(deadletter.Verdict{Action: deadletter.Fail}, now)
	f.detours.accepted(f.config, retry(medium))
	f.detours.refused(retry(medium), now.Add(4*time.Second))
	f.detours.refused(retry(short), now.Add(4*time.Second))
	f.detours.avoidRefusing(f.config, alarm{}, now.Add(4*time.Second))
	require.Empty(t, f.detours.avoided, "after four seconds")
	f.detours.avoidRefusing(f.config, alarm{}, now.Add(6*time.Second))
	if _, shut := f.detours.avoided[short]; !shut || len(f.detours.avoided) != 1 {
		t.Errorf("after six seconds: %v", f.detours.avoided)
	}
}

// A new channel can be served at once when the old one is not.
func TestOneMessageStillTriesADelayAtOnce(t *testing.T) {
	t.Parallel()
	_, f := detouring(t)
	f.detours.avoid(f.config, medium, time.Now().Add(-time.Millisecond))
	for i, want := range []time.Duration{medium, long, long} {
		if got := f.detours.around(f.config, retry(medium), time.Now()); got.Delay != want {
			t.Errorf("message %d: %s, want %s", i, got.Delay, want)
		}
		f.detours.avoid(f.config, medium, time.Now())
	}
}

// If one queue is back, the others can be back, too. No message should take a shorter delay than necessary.
func TestDetoursEndWithAnAnswer(t *testing.T) {
	t.Parallel()
	s, f := detouring(t)
	var acks acknowledged
	for _, delay := range []time.Duration{short, long} {
		f.detours.avoid(f.config, delay, time.Now().Add(probePeriod))
	}
	for _, test := range []struct {
		delay time.Duration
		left  int
	}{{medium, 2}, {long, 0}} {
		require.NoError(t, s.finish(&message{verdict: f.sentBy(retry(test.delay)), delivery: amqp.Delivery{Acknowledger: &acks}}))
		require.Len(t, f.detours.avoided, test.left, test.delay)
	}
}

// The message's own delay is still bound. So an unbound substitute is no reason to park the message.
func TestSubstituteThatIsNotBoundIsNoReasonToPark(t *testing.T) {
	t.Parallel()
	s, f := detouring(t)
	s.backlog.timer = time.NewTimer(0)
	v := &retried{Retrying: f, Verdict: retry(medium), sent: retry(long)}
	m := &message{verdict: v}
	if err := s.proceed(nil, m, v.returned(m)); err != nil || len(s.backlog.messages) != 1 || v.Delay != medium {
		t.Errorf("%+v, %d kept, %v", v.Verdict, len(s.backlog.messages), err)
	}
}

// A configuration of another kind never becomes an empty one.
func TestConfigurationOfAnotherKind(t *testing.T) {
	t.Parallel()
	_, f := detouring(t)
	before := f.config
	require.Panics(t, func() { f.Configure(&delaying.Exchange{}) })
	require.Same(t, before, f.config)
}

// A delay that has left the configuration is not tried again.
func TestReloadForgetsDelays(t *testing.T) {
	t.Parallel()
	s, f := detouring(t)
	for _, delay := range []time.Duration{short, medium, time.Minute} {
		f.detours.avoid(f.config, delay, time.Now())
		f.detours.refused(retry(delay), time.Now())
	}
	s.reconfigure(f.config)
	if len(f.detours.avoided) != 2 || len(f.detours.refusedSince) != 0 {
		t.Errorf("%v, %v", f.detours, f.detours.refusedSince)
	}
}
