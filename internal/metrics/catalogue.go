package metrics

import "github.com/prometheus/client_golang/prometheus"

// metric describes a metric for its readers.
type metric struct {
	Name, Type, Help string
	// Labels are the metric's variable labels.
	Labels []string
}

func counter(name, help string, labels ...string) metric {
	return metric{Name: prefix + name + "_total", Type: "counter", Help: help, Labels: labels}
}

func gauge(name, help string, labels ...string) metric {
	return metric{Name: prefix + name, Type: "gauge", Help: help, Labels: labels}
}

// flowCounter is a counter of each pipeline and each delayed exchange, with further labels.
func flowCounter(name, help string, labels ...string) metric {
	return counter(name, help, append(flowLabels(), labels...)...)
}

func flowGauge(name, help string) metric { return gauge(name, help, flowLabels()...) }

// flowLabels identify pipelines and delayed exchanges, which can have the same name.
func flowLabels() []string { return []string{labelKind, labelName, labelVhost} }

// workQueueCounter is a counter of each work queue of a pipeline, with further labels. The label is empty for a work
// queue that is not in the configuration.
func workQueueCounter(name, help string, labels ...string) metric {
	return flowCounter(name, help, append([]string{"work_queue"}, labels...)...)
}

const (
	prefix = "rabbitmq_retry_"

	labelKind  = "kind" // a [rules.FlowKind]
	labelName  = "name"
	labelVhost = "vhost"
)

// Metrics of messages.
var (
	received = flowCounter("messages_received", "Deliveries received from the inbox.")
	// The broker's redelivered flag does not help: at their first delivery, dead letters of quorum queues have it on
	// RabbitMQ 4.0 and 4.3, and dead letters of classic queues on 4.3.
	redeliveries = flowCounter("messages_redelivered",
		"Deliveries in flight when a session ended: the broker delivers them again, here or to another worker. "+
			"If it could not deliver a message, this includes deliveries acknowledged since the delivery before that message.")
	retried = workQueueCounter("messages_retried",
		"Messages sent back to their work queue, by delay; a message counts each time that it waits.", "delay")
	rescued = workQueueCounter("messages_rescued", "Messages published straight to a work queue that had lost its binding.")
	failed  = workQueueCounter("messages_parked",
		"Messages parked in the failed queue, by dead-letter-reason; malformed includes messages left to the broker.", "reason")
	detoured = workQueueCounter("messages_detoured",
		"Messages parked in the pipeline's failed queue because the failed queue of their work queue did not accept them, by cause.", "detour")
	postponed = flowCounter("messages_delayed", "Messages that wait in the levels.")
	delivered = flowCounter("messages_delivered", "Messages that asked for no delay, and were routed at once.")
	refused   = flowCounter("messages_unrouted",
		"Messages put into the unrouted queue, by dead-letter-reason; malformed includes messages left to the broker.", "reason")
	returned = flowCounter("publishes_returned", "Publishes that the broker returned: the exchange has no queue for them.", "exchange")
	nacked   = flowCounter("publishes_nacked", "Publishes that the broker refused: a queue is full, or cannot be reached.", "exchange")
	setAside = flowCounter("messages_refused", "Messages put into the refused queue because one of their target queues refused them.")
	latency  = metric{prefix + "confirm_duration_seconds", "histogram", "Time from a publish to the broker's answer.", flowLabels()}
	restarts = flowCounter("session_restarts",
		"Sessions that ended with an error, or could not be opened; each is followed by a new attempt.")
)

// Metrics that a session reports of itself, as of the last second.
var (
	ready     = flowGauge("ready", "1 if the pipeline or delayed exchange is ready, as in /readyz.")
	connected = flowGauge("connected", "1 if the connections are open.")
	consuming = flowGauge("consuming", "1 if the worker is consuming the inbox.")
	blocked   = flowGauge("blocked", "1 if the broker blocks publishers: it has a memory or disk alarm.")
	inFlight  = flowGauge("messages_in_flight", "Deliveries that are not acknowledged yet.")
	backlog   = flowGauge("messages_in_backlog",
		"Deliveries that the broker refuses, does not confirm within ten seconds, or has no exchange or queue for; "+
			"a new session keeps the number until its first report.")
	oldest = flowGauge("inbox_oldest_message_age_seconds",
		"Time since the broker dead-lettered the oldest delivery in flight or received within the last second. "+
			"It is 0 without such a delivery, and absent for a delayed exchange and while the worker does not consume.")
)

// Metrics of the process and its configuration.
var (
	queueInfo  = gauge("queue_info", "Always 1: a queue of the configuration, and what it is for.", append(flowLabels(), "queue", "role")...)
	generation = gauge("config_generation", "How many configurations have been at work; 1 since the start.")
	reloaded   = gauge("config_last_reload_successful",
		"1 if the last configuration that was read is at work. 0 if all of it or one of its elements was refused, and the previous one stays.")
	refusedElement = gauge("config_element_refused",
		"Always 1: an element of the configuration that this release cannot run. It runs as before, or is off since the start.",
		flowLabels()...)
	reloadedAt     = gauge("config_last_reload_success_timestamp_seconds", "When the configuration at work was read.")
	build          = gauge("build_info", "Always 1.", "version", "goversion")
	countersByName = []metric{
		received, redeliveries, retried, rescued, failed, detoured, postponed, delivered, refused, setAside, returned, nacked, restarts,
	}
	// collected are the metrics of a [collector].
	collected = []metric{
		ready, connected, consuming, blocked, inFlight, backlog, oldest, queueInfo, generation, reloaded, refusedElement, reloadedAt,
	}
)

func (m metric) desc() *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}
