package delayed

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
