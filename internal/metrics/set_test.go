package metrics

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

func newPipeline(t testing.TB, name string, delays ...string) *deadletter.Pipeline {
	t.Helper()
	return deadletter.NewPipeline(pipeline.Worker{
		Version: pipeline.WorkerVersion, Name: name, Vhost: "/", Delays: delays, MaxAttempts: 3,
		WorkQueues: map[string]pipeline.WorkerQueue{name + ".created": {FailedQueue: pipeline.WorkerFailedQueue{Name: name + " given up"}}},
	})
}

func newExchange(t testing.TB, name string) *delaying.Exchange {
	t.Helper()
	return delaying.NewExchange(delayed.Worker{Version: delayed.WorkerVersion, Name: name, Vhost: "/", MaxDelay: "1h", Precision: "1s"})
}

// values returns the exported series, as in rabbitmq_retry_messages_parked_total{...,kind="pipeline",name="orders"}.
func values(t *testing.T, s *Set) map[string]float64 {
	t.Helper()
	families, err := s.Gatherer().Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// The documentation, the dashboard and the alert rules are checked against the catalogue.
func TestCatalogueIsWhatIsExported(t *testing.T) {
	t.Parallel()
	s := New("1.2.3")
	s.ConfigLoaded([]Config{newPipeline(t, "orders", "5s"), newExchange(t, "events")},
		[]workerconfig.Refused{{ID: workerconfig.ID{Kind: rules.Pipeline, Name: "bills", Vhost: "/"}, Err: errors.New("newer")}})
	s.Flow(newPipeline(t, "orders", "5s")).Enter(Consuming)
	families, err := s.Gatherer().Gather()
	require.NoError(t, err)
	described := map[string]metric{}
	for _, m := range catalogue() {
		described[m.Name] = m
	}
	for _, family := range families {
		m, found := described[family.GetName()]
		if !found {
			require.False(t, strings.HasPrefix(family.GetName(), prefix), "%s is not in the catalogue", family.GetName())
			continue
		}
		delete(described, family.GetName())
		if got := strings.ToLower(family.GetType().String()); got != m.Type || family.GetHelp() != m.Help || len(family.GetMetric()[0].GetLabel()) != len(m.Labels) {
			t.Errorf("%s is a %s %q with labels %v", m.Name, got, family.GetHelp(), family.GetMetric()[0].GetLabel())
		}
	}
	for name := range described {
		t.Errorf("%s is not exported", name)
	}
}

func TestReloadKeepsTheCountsOfPipelinesThatStay(t *testing.T) {
	t.Parallel()
	s := New("")
	s.ConfigLoaded([]Config{newPipeline(t, "orders", "5s"), newPipeline(t, "mails", "5s")}, nil)
	orders := s.Flow(newPipeline(t, "orders", "5s"))
	orders.Received()
	mails := s.Flow(newPipeline(t, "mails", "5s"))
	s.ConfigRead(errors.New("wrong"))
	got := values(t, s)
	if got[generation.Name+"{}"] != 1 || got[reloaded.Name+"{}"] != 0 {
		t.Errorf("after a refused configuration: %v", got)
	}

	s.ConfigLoaded([]Config{newPipeline(t, "orders", "5s", "1m", "2m"), newPipeline(t, "bills", "5s")}, nil)
	if s.Flow(newPipeline(t, "orders", "1m")) != orders {
		t.Error("the pipeline's counts begin again")
	}
	orders.Retried("orders.created", time.Minute)
	orders.Failed("orders.created", "a reason of tomorrow")
	orders.Failed("of a publisher's choice", deadletter.ReasonExhausted)
	// The removed pipeline finishes its messages in flight.
	mails.Received()
	mails.Retried("", time.Hour)
	mails.Failed("", "a reason of tomorrow")
	mails.Exchange("mails.retry").Answered(time.Second, true, false)
	s.Flow(newPipeline(t, "mails", "5s")).Enter(Connected) // was about to start
	got = values(t, s)
	for series, want := range map[string]float64{
		`rabbitmq_retry_config_generation{}`:                                                                                         2,
		`rabbitmq_retry_config_last_reload_successful{}`:                                                                             1,
		`rabbitmq_retry_messages_received_total{kind="pipeline",name="orders",vhost="/"}`:                                            1,
		`rabbitmq_retry_messages_retried_total{delay="1m",kind="pipeline",name="orders",vhost="/",work_queue="orders.created"}`:      1,
		`rabbitmq_retry_messages_retried_total{delay="2m",kind="pipeline",name="orders",vhost="/",work_queue="orders.created"}`:      0,
		`rabbitmq_retry_messages_parked_total{kind="pipeline",name="orders",reason="other",vhost="/",work_queue="orders.created"}`:   1,
		`rabbitmq_retry_messages_parked_total{kind="pipeline",name="orders",reason="exhausted",vhost="/",work_queue=""}`:             1,
		`rabbitmq_retry_consuming{kind="pipeline",name="bills",vhost="/"}`:                                                           0,
		`rabbitmq_retry_messages_parked_total{kind="pipeline",name="bills",reason="exhausted",vhost="/",work_queue="bills.created"}`: 0,
	} {
		if value, found := got[series]; !found || value != want {
			t.Errorf("%s is %v (found: %t), want %v", series, value, found, want)
		}
	}
	for series := range got {
		require.NotContains(t, series, "publisher", "a label from a message")
		require.NotContains(t, series, "mails", "a pipeline that is gone")
	}
	if statuses := s.Statuses(); len(statuses) != 2 {
		t.Errorf("a pipeline that is gone is judged: %+v", statuses)
	}
}

func TestQueuesAndTheirRoles(t *testing.T) {
	t.Parallel()
	s := New("")
	s.ConfigLoaded([]Config{newPipeline(t, "orders", "5s"), newExchange(t, "events")}, nil)
	s.ConfigLoaded([]Config{newPipeline(t, "orders", "0s", "1m", "1m"), newExchange(t, "events")}, nil)
	roles := map[string]int{}
	for series := range values(t, s) {
		if labels, found := strings.CutPrefix(series, queueInfo.Name); found {
			roles[regexp.MustCompile(`role="[a-z]+"`).FindString(labels)]++
			if strings.Contains(labels, `"failed"`) && labels != `{kind="pipeline",name="orders",queue="orders.failed",role="failed",vhost="/"}` &&
				labels != `{kind="pipeline",name="orders",queue="orders given up",role="failed",vhost="/"}` {
				t.Error(labels)
			}
		}
	}
	// 1 h has 12 levels of 1 s and more.
	want := map[string]int{
		`role="inbox"`: 2, `role="refused"`: 2, `role="retry"`: 1, `role="failed"`: 2, `role="level"`: 12, `role="unrouted"`: 1,
	}
	require.Equal(t, want, roles)
}

func TestProblems(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := func(stage Stage, r Report, silent time.Duration, err error) *state {
		return &state{stage: stage, report: r, reportedAt: now.Add(-silent), lastError: err}
	}
	for name, test := range map[string]struct {
		state *state
		want  string
	}{
		"never connected":   {&state{}, "the inbox is not consumed"},
		"failed to connect": {s(Disconnected, Report{}, time.Hour, errors.New("connection refused")), "connection refused"},
		"opening the inbox": {s(Connected, Report{}, 0, nil), "the inbox is not consumed"},
		"consuming":         {s(Consuming, Report{InFlight: 256}, 9*time.Second, nil), ""},
		"hangs in a write":  {s(Consuming, Report{}, 11*time.Second, nil), "the session has been silent for 11s: the broker does not read from its connection"},
		"blocked":           {s(Consuming, Report{Blocked: true}, 0, nil), "the broker blocks publishers: wait for its alarm to clear"},
		"backlog":           {s(Consuming, Report{Backlog: 3}, 0, nil), "3 message(s) kept unacknowledged: the broker refuses them, does not confirm them, or has no exchange or queue for them"},
	} {
		require.Equal(t, test.want, test.state.problem(now), name)
	}
}

// If the broker refuses everything, the session is renewed every few seconds, and the pipeline stays unready.
func TestBacklogOutlivesItsSession(t *testing.T) {
	t.Parallel()
	p := New("").Flow(newPipeline(t, "orders", "5s"))
	p.Enter(Consuming)
	p.Report(Report{Backlog: 1, InFlight: 5, Oldest: time.Now()})
	p.Enter(Disconnected)
	p.Restarted(errors.New("the broker has refused every message"))
	p.Enter(Connected)
	p.Enter(Consuming)
	if got := p.status(time.Now()); got.Ready || p.report != (Report{Backlog: 1}) {
		t.Errorf("%+v, %+v", got, p.report)
	}
	p.Report(Report{})
	if got := p.status(time.Now()); !got.Ready {
		t.Errorf("%+v", got)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for at, want := range map[time.Time]time.Duration{
		{}:                      0,
		now.Add(-3 * time.Hour): 3 * time.Hour,
		now.Add(time.Minute):    0,
	} {
		require.Equal(t, want, age(at, now), at)
	}
}

// BenchmarkMessage measures the metrics' cost for a retried message.
func BenchmarkMessage(b *testing.B) {
	p := New("").Flow(newPipeline(b, "orders", "5s"))
	retry := p.Exchange("orders.retry")
	b.ReportAllocs()
	for b.Loop() {
		published := time.Now()
		p.Received()
		retry.Answered(time.Since(published), true, false)
		p.Retried("", 5*time.Second)
	}
}

// Dashboards and alerts rely on the metrics of 0.1 and on their labels.
func TestMetricsOf01Stay(t *testing.T) {
	t.Parallel()
	lines, err := os.ReadFile("testdata/of-0.1.txt")
	require.NoError(t, err)
	var now []string
	for _, m := range catalogue() {
		now = append(now, strings.TrimSpace(fmt.Sprint(m.Name, " ", m.Type, " ", strings.Join(m.Labels, ", "))))
	}
	for line := range strings.Lines(string(lines)) {
		require.Contains(t, now, strings.TrimSpace(line))
	}
}
