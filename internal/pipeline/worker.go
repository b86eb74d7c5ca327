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

// Permissions are the three patterns of a broker user's permissions in a vhost.
type Permissions struct {
	Configure string
	Write     string
	Read      string
}

// OperatorPermissions are the least that somebody's user needs who looks after the failed queue, by command of the
// sidecar: "list", which show and export share, "replay", "import" and "delete".
func OperatorPermissions(n Names) map[string]Permissions {
	read := Permissions{Configure: "^$", Write: "^$", Read: exactPattern([]string{n.FailedQueue()})}
	replay, imports := read, read
	replay.Write = exactPattern([]string{n.ReturnExchange()})
	imports.Write = exactPattern([]string{n.FailedExchange()})
	return map[string]Permissions{"list": read, "replay": replay, "import": imports, "delete": read}
}

// WorkerPermissions are the least that the sidecar's user needs. The default exchange
// (amq.default) is written only to save messages whose work queue lost its binding.
func WorkerPermissions(n Names) Permissions {
	return Permissions{
		Configure: "^$",
		Write:     exactPattern([]string{"amq.default", n.FailedExchange(), n.RetryExchange(), n.ReturnExchange()}),
		Read:      exactPattern([]string{n.Inbox()}),
	}
}
