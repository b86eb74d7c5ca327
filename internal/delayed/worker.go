package delayed

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"

// WorkerVersion is the version of the worker object's shape.
const WorkerVersion = 1

// Worker is what the sidecar has to know of a delayed exchange: one element of "delayed_exchanges" in its configuration,
// and the provider's attribute `worker`. It holds no secrets.
type Worker struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Vhost   string `json:"vhost"`
	// MaxDelay and Precision are durations. A longer delay goes to the unrouted queue.
	MaxDelay  string `json:"max_delay"`
	Precision string `json:"precision"`
}

// Levels are those that messages wait in, from the lowest up. The durations are valid.
func (w Worker) Levels() []Level {
	var e Exchange
	e.MaxDelay.Wait, _ = pipeline.ParseDelay(w.MaxDelay)
	e.Precision.Wait, _ = pipeline.ParseDelay(w.Precision)
	return e.Levels()
}

// Queues are those in which the delayed exchange's messages wait or end.
func (w Worker) Queues() []pipeline.Queue {
	n := Names(w.Name)
	queues := []pipeline.Queue{
		{Name: n.Inbox(), Role: pipeline.RoleInbox},
		{Name: n.Refused(), Role: pipeline.RoleRefused},
		{Name: n.UnroutedQueue(), Role: pipeline.RoleUnrouted},
	}
	for _, l := range w.Levels() {
		queues = append(queues, pipeline.Queue{Name: n.Level(l), Role: pipeline.RoleLevel})
	}
	return queues
}
