package metrics

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Set is all that can be seen of one worker process. Its methods may be called at any time.
type Set struct {
	registry *prometheus.Registry
	counters map[string]*prometheus.CounterVec
	latency  *prometheus.HistogramVec

	mu        sync.Mutex
	flows     map[workerconfig.ID]*Flow
	pipelines map[workerconfig.ID]*Pipeline
	exchanges map[workerconfig.ID]*DelayedExchange
	config    config
}

// New makes a set for a program of this version.
func New(version string) *Set {
	s := &Set{
		registry:  prometheus.NewRegistry(),
		counters:  map[string]*prometheus.CounterVec{},
		flows:     map[workerconfig.ID]*Flow{},
		pipelines: map[workerconfig.ID]*Pipeline{},
		exchanges: map[workerconfig.ID]*DelayedExchange{},
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: latency.Name, Help: latency.Help,
			// A broker answers within a millisecond, and gives up on a queue after 65 seconds.
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 75},
		}, latency.Labels),
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: build.Name, Help: build.Help}, build.Labels)
	info.WithLabelValues(version, runtime.Version()).Set(1)
	s.registry.MustRegister(
		collector{s}, s.latency, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, m := range countersByName {
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
		s.counters[m.Name] = vec
		s.registry.MustRegister(vec)
	}
	return s
}

// Gatherer is where Prometheus' handler takes the metrics from.
func (s *Set) Gatherer() prometheus.Gatherer { return s.registry }

// Pipeline is what the sessions of a pipeline count in. It stays the same for a pipeline whose
// configuration changes. One that is not in the configuration, or not any more, is not judged.
func (s *Set) Pipeline(p *deadletter.Pipeline) *Pipeline {
	s.mu.Lock()
	defer s.mu.Unlock()
	if watched, found := s.pipelines[p.ID()]; found {
		return watched
	}
	watched := s.addPipeline(p)
	s.forget(watched.Flow)
	return watched
}

// DelayedExchange is the same for a delayed exchange.
func (s *Set) DelayedExchange(e *delaying.Exchange) *DelayedExchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	if watched, found := s.exchanges[e.ID()]; found {
		return watched
	}
	watched := s.addExchange(e)
	s.forget(watched.Flow)
	return watched
}

// forget removes what is known of a pipeline or a delayed exchange.
func (s *Set) forget(f *Flow) {
	f.forgotten.Store(true)
	delete(s.flows, f.id)
	delete(s.pipelines, f.id)
	delete(s.exchanges, f.id)
	labels := prometheus.Labels{string(f.id.Kind): f.id.Name, labelVhost: f.id.Vhost}
	for _, vec := range s.counters {
		vec.DeletePartialMatch(labels)
	}
	s.latency.DeletePartialMatch(labels)
}

// Statuses tells of each pipeline and each delayed exchange whether it is ready, ordered by vhost and name.
func (s *Set) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	statuses := make([]Status, 0, len(s.flows))
	for _, f := range slices.SortedFunc(maps.Values(s.flows), func(a, b *Flow) int {
		return cmp.Or(cmp.Compare(a.id.Vhost, b.id.Vhost), cmp.Compare(a.id.Name, b.id.Name), cmp.Compare(b.id.Kind, a.id.Kind))
	}) {
		statuses = append(statuses, f.status(now))
	}
	return statuses
}
