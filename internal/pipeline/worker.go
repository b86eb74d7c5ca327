package pipeline

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
	// MaxAge is a duration, "" for none.
	MaxAge string `json:"max_age,omitempty"`
	// WorkQueues has an object per work queue, empty unless something is set for that queue alone.
	WorkQueues map[string]WorkerQueue `json:"work_queues"`
}

// WorkerQueue is what the sidecar has to know of one work queue.
type WorkerQueue struct {
	// MaxAttempts takes the place of the pipeline's, 0 if there is none.
	MaxAttempts int `json:"max_attempts,omitempty"`
}
