package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collector exports what is known at the moment of a scrape.
type collector struct{ set *Set }

// Describe implements [prometheus.Collector].
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range []metric{ready, connected, consuming, blocked, inFlight, backlog, oldest, queueInfo, generation, reloaded, reloadedAt} {
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
		export(reloaded, number(!config.refused))
		export(reloadedAt, float64(config.loadedAt.UnixMilli())/1000)
	}
	now := time.Now()
	for _, f := range c.set.flows {
		f.state.export(now, func(m metric, value float64) {
			if values, applies := f.values(m); applies {
				export(m, value, values...)
			}
		})
		for _, q := range f.queues {
			values, _ := f.values(queueInfo, q.Name, string(q.Role))
			export(queueInfo, 1, values...)
		}
	}
}

func (s *state) export(now time.Time, export func(metric, float64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	export(ready, number(s.problem(now) == ""))
	export(connected, number(s.stage != Disconnected))
	export(consuming, number(s.stage == Consuming))
	export(blocked, number(s.report.Blocked))
	export(inFlight, float64(s.report.InFlight))
	export(backlog, float64(s.report.Backlog))
	if s.stage == Consuming {
		export(oldest, age(s.report.Oldest, now).Seconds())
	}
}

// age is never negative: the broker's clock may be ahead.
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
