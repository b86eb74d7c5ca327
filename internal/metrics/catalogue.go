package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric describes a metric to those who read it.
type Metric struct {
	Name, Type, Help string
	// Labels, without those of a single time series.
	Labels []string
}

func counter(name, help string, labels ...string) Metric {
	return Metric{Name: prefix + name + "_total", Type: "counter", Help: help, Labels: labels}
}

func gauge(name, help string, labels ...string) Metric {
	return Metric{Name: prefix + name, Type: "gauge", Help: help, Labels: labels}
}

func histogram(name, help string, labels ...string) Metric {
	return Metric{Name: prefix + name, Type: "histogram", Help: help, Labels: labels}
}

const (
	prefix = "rabbitmq_retry_"

	labelPipeline = "pipeline"
	labelVhost    = "vhost"
)

// What messages went through.
var (
	received = counter("received", "Deliveries received from the inbox.", labelPipeline, labelVhost)
	// The broker's flag would not do: from 4.0 on, dead letters bring it along from the work queue.
	redeliveries = counter("redeliveries_caused", "Deliveries in flight when a session ended: the broker delivers them again, here or to another worker.", labelPipeline, labelVhost)
	retried      = counter("retried", "Messages sent back to their work queue, by the delay that they wait.", labelPipeline, labelVhost, "delay")
	rescued      = counter("rescued", "Messages published straight to a work queue that had lost its binding.", labelPipeline, labelVhost)
	failed       = counter("failed", "Messages parked in the failed queue, by dead-letter-reason; malformed includes those left to the broker.", labelPipeline, labelVhost, "reason")
	returned     = counter("returned", "Publishes that the broker returned: the exchange has no queue for them.", labelPipeline, labelVhost, "exchange")
	nacked       = counter("nacked", "Publishes that the broker refused: a queue is full, or cannot be reached.", labelPipeline, labelVhost, "exchange")
	latency      = histogram("confirm_latency_seconds", "Time from a publish to the broker's answer.", labelPipeline, labelVhost)
	restarts     = counter("session_restarts", "Sessions that ended with an error, or could not be opened; each is followed by a new attempt.", labelPipeline, labelVhost)
)

// What a session reports of itself, as of the last second.
var (
	ready     = gauge("ready", "1 if the pipeline is ready, by the same judgement as /readyz.", labelPipeline, labelVhost)
	connected = gauge("connected", "1 if the pipeline's connections are open.", labelPipeline, labelVhost)
	consuming = gauge("consuming", "1 if the worker is consuming the inbox.", labelPipeline, labelVhost)
	blocked   = gauge("blocked", "1 if the broker blocks publishers: it has a memory or disk alarm.", labelPipeline, labelVhost)
	inFlight  = gauge("in_flight_messages", "Deliveries that are not acknowledged yet.", labelPipeline, labelVhost)
	held      = gauge("held_messages", "Deliveries that the broker refuses, does not confirm within ten seconds, or has no exchange or failed queue for; a new session keeps the number until it has looked itself.", labelPipeline, labelVhost)
	oldest    = gauge("inbox_oldest_message_age_seconds", "Time since the broker dead-lettered the oldest delivery that is in flight, or was received within the last second; 0 if there is none, absent while not consuming.", labelPipeline, labelVhost)
)

// What the process works with.
var (
	generation     = gauge("config_generation", "How many configurations have been at work; 1 since the start.")
	reloaded       = gauge("config_last_reload_successful", "1 if the last configuration that was read is at work, 0 if it was refused and the one before goes on.")
	reloadedAt     = gauge("config_last_reload_success_timestamp_seconds", "When the configuration at work was read.")
	build          = gauge("build_info", "Always 1.", "version", "goversion")
	countersByName = []Metric{received, redeliveries, retried, rescued, failed, returned, nacked, restarts}
)

// Catalogue lists all metrics but those of the Go runtime and the process.
func Catalogue() []Metric {
	return slices.Concat(countersByName, []Metric{latency, ready, connected, consuming, blocked, inFlight, held, oldest, generation, reloaded, reloadedAt, build})
}

func (m Metric) desc() *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}
