package metrics

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Stage is how far a session has come.
type Stage int

// Stages of a session.
const (
	Disconnected Stage = iota
	// Connected sessions do not consume yet, or no longer consume.
	Connected
	Consuming
)

func (s Stage) String() string {
	return [...]string{"disconnected", "connected", "consuming"}[s]
}

// Report is a session's report on itself, made every second.
type Report struct {
	InFlight int
	// Backlog is how many deliveries are kept unacknowledged because they cannot be published now.
	Backlog int
	Blocked bool
	// Oldest is when the oldest delivery was dead-lettered. It is zero if there is no delivery.
	Oldest time.Time
}

// state is the latest known state of the sessions of a pipeline or a delayed exchange.
type state struct {
	mu         sync.Mutex
	stage      Stage
	report     Report
	reportedAt time.Time
	lastError  error
}

// Enter notes how far the session has come.
func (f *Flow) Enter(stage Stage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stage, f.reportedAt = stage, time.Now()
	switch stage {
	case Consuming:
		f.lastError = nil
	case Disconnected:
		// The next session is likely to have the same backlog, and will report it. From 0 each time, an alert would never fire.
		f.report = Report{Backlog: f.report.Backlog}
	case Connected:
	}
}

// Redelivered counts deliveries that the broker delivers again.
func (f *Flow) Redelivered(deliveries int) { f.redeliveries.Add(float64(deliveries)) }

// Restarted counts a session that ended, and keeps the reason.
func (f *Flow) Restarted(reason error) {
	f.restarts.Inc()
	f.Enter(Disconnected)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastError = reason
}

// Report notes a session's report.
func (f *Flow) Report(r Report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report, f.reportedAt = r, time.Now()
}

// Status says whether the worker runs a pipeline or a delayed exchange.
type Status struct {
	Kind  rules.FlowKind `json:"-"`
	Name  string         `json:"name"`
	Vhost string         `json:"vhost"`
	Ready bool           `json:"ready"`
	State string         `json:"state"`
	// Problem is why it is not ready.
	Problem string `json:"problem,omitempty"`
}

func (f *Flow) status(now time.Time) Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	problem := f.problem(now)
	return Status{
		Kind: f.id.Kind, Name: f.id.Name, Vhost: f.id.Vhost, Ready: problem == "", State: f.stage.String(), Problem: problem,
	}
}

func (s *state) problem(now time.Time) string {
	const silence = 10 * time.Second // without a report for longer than that, the session's loop hangs in a write
	switch silent := now.Sub(s.reportedAt); {
	case s.stage != Consuming && s.lastError != nil:
		return s.lastError.Error()
	case s.stage != Consuming:
		return "the inbox is not consumed"
	case silent > silence:
		return fmt.Sprintf("the session has been silent for %s: the broker does not read from its connection", silent.Round(time.Second))
	case s.report.Blocked:
		return "the broker blocks publishers: wait for its alarm to clear"
	case s.report.Backlog > 0:
		return fmt.Sprintf("%d message(s) kept unacknowledged: "+
			"the broker refuses them, does not confirm them, or has no exchange or queue for them", s.report.Backlog)
	}
	return ""
}

// collector exports the state at the moment of a scrape.
type collector struct{ set *Set }

// Describe implements [prometheus.Collector].
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range collected {
		out <- m.desc()
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(out chan<- prometheus.Metric) {
	c.set.mu.Lock()
	defer c.set.mu.Unlock()
	export := func(m metric, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(m.desc(), prometheus.GaugeValue, value, labels...)
	}
	if config := c.set.config; config.generation > 0 {
		export(generation, float64(config.generation))
		export(reloaded, number(!config.unusable && len(config.refused) == 0))
		export(reloadedAt, float64(config.loadedAt.UnixMilli())/1000)
		unique := map[workerconfig.ID]bool{}
		for _, r := range config.refused {
			unique[r.ID] = true
		}
		for id := range unique {
			export(refusedElement, 1, string(id.Kind), id.Name, id.Vhost)
		}
	}
	now := time.Now()
	for _, f := range c.set.flows {
		f.export(now, func(m metric, value float64) { export(m, value, f.values()...) })
		for _, q := range f.queues {
			export(queueInfo, 1, f.values(q.Name, string(q.Role))...)
		}
	}
}

func (f *Flow) export(now time.Time, export func(metric, float64)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	export(ready, number(f.problem(now) == ""))
	export(connected, number(f.stage != Disconnected))
	export(consuming, number(f.stage == Consuming))
	export(blocked, number(f.report.Blocked))
	export(inFlight, float64(f.report.InFlight))
	export(backlog, float64(f.report.Backlog))
	if f.stage == Consuming && f.id.Kind == rules.Pipeline { // a delayed exchange's publishers can write any time
		export(oldest, age(f.report.Oldest, now).Seconds())
	}
}

// age is never negative, since the broker's clock can be ahead.
func age(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at))
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
