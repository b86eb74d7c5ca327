package topology

// WorkerVersion is the version of the worker object's shape.
const WorkerVersion = 1

// Worker is what the sidecar has to know of a pipeline: one element of "pipelines" in its
// configuration, and the provider's attribute `worker`. It holds no secrets.
type Worker struct {
	Version     int      `json:"version"`
	Name        string   `json:"name"`
	Vhost       string   `json:"vhost"`
	Delays      []string `json:"delays"`
	MaxAttempts int      `json:"max_attempts"`
	RetryOn     []string `json:"retry_on"`
	// WorkQueues has an object per work queue, empty until something can be set for one queue alone.
	WorkQueues map[string]WorkerQueue `json:"work_queues"`
}

// WorkerQueue is what the sidecar has to know of one work queue.
type WorkerQueue struct{}
