// Package metrics holds everything that an operator can see of a running worker. The sessions of each pipeline and
// delayed exchange count messages, and report on themselves once a second. The package also knows which configuration
// is at work. Prometheus collects all of it, and readiness follows from the same facts.
//
// Labels come from the configuration alone, never from a message.
package metrics

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Set holds everything that can be seen of one worker process. Its methods can be called at any time.
type Set struct {
	registry *prometheus.Registry
	counters map[string]*prometheus.CounterVec
	latency  *prometheus.HistogramVec

	mu     sync.Mutex
	flows  map[workerconfig.ID]*Flow
	config config
}

// Config is the configuration of a pipeline or a delayed exchange.
type Config interface {
	ID() workerconfig.ID
	// Exchanges are the exchanges that messages are published to.
	Exchanges() []string
	// Queues are the queues where messages wait or end.
	Queues() []pipeline.Queue
}

// New makes a set for a program of this version.
func New(version string) *Set {
	s := &Set{
		registry: prometheus.NewRegistry(),
		counters: map[string]*prometheus.CounterVec{},
		flows:    map[workerconfig.ID]*Flow{},
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

// Gatherer is the source of Prometheus' handler.
func (s *Set) Gatherer() prometheus.Gatherer { return s.registry }

// Flow returns the counters of the sessions of a pipeline or a delayed exchange. They stay the same when its
// configuration changes. One that is not in the configuration does not count for readiness.
func (s *Set) Flow(c Config) *Flow {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, found := s.flows[c.ID()]
	if !found {
		f = s.newFlow(c)
		s.forget(f)
	}
	return f
}

// forget removes all metrics of a pipeline or a delayed exchange.
func (s *Set) forget(f *Flow) {
	f.forgotten.Store(true)
	delete(s.flows, f.id)
	labels := prometheus.Labels{labelKind: string(f.id.Kind), labelName: f.id.Name, labelVhost: f.id.Vhost}
	for _, vec := range s.counters {
		vec.DeletePartialMatch(labels)
	}
	s.latency.DeletePartialMatch(labels)
}

// Statuses says of each pipeline and each delayed exchange whether it is ready, ordered by vhost and name.
func (s *Set) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	statuses := make([]Status, 0, len(s.flows))
	for _, f := range s.flows {
		statuses = append(statuses, f.status(now))
	}
	slices.SortFunc(statuses, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Vhost, b.Vhost), cmp.Compare(a.Name, b.Name), cmp.Compare(b.Kind, a.Kind))
	})
	return statuses
}

// config describes the configuration at work.
type config struct {
	generation int
	loadedAt   time.Time
	// unusable says that the latest configuration as a whole cannot be used.
	unusable bool
	// refused are the elements that cannot be used.
	refused []workerconfig.Refused
}

// ConfigLoaded notes that these pipelines and delayed exchanges are at work from now on, and which elements of the
// configuration are refused. It forgets all others.
func (s *Set) ConfigLoaded(configs []Config, refused []workerconfig.Refused) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = config{generation: s.config.generation + 1, loadedAt: time.Now(), refused: refused}
	kept := map[workerconfig.ID]bool{}
	for _, c := range configs {
		kept[c.ID()] = true
		if f, found := s.flows[c.ID()]; found {
			f.expect(c)
		} else {
			s.flows[c.ID()] = s.newFlow(c)
		}
	}
	for id, f := range s.flows {
		if !kept[id] {
			s.forget(f)
		}
	}
}

// ConfigRead notes whether the latest configuration can be used. If it cannot, the configuration at work stays.
func (s *Set) ConfigRead(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.unusable = err != nil
}

// Refused are the elements of the configuration that are refused.
func (s *Set) Refused() []workerconfig.Refused {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.refused
}
