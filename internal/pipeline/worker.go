package pipeline

import (
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// WorkerVersion is the version of the worker object's format.
const WorkerVersion = 1

// Worker describes a pipeline for the sidecar. It is an element of "pipelines" in the sidecar's configuration, and the
// provider's attribute `worker`. It holds no secrets.
type Worker struct {
	Version     int      `json:"version"`
	Name        string   `json:"name"`
	Vhost       string   `json:"vhost"`
	Delays      []string `json:"delays"`
	MaxAttempts int      `json:"max_attempts"`
	RetryOn     []string `json:"retry_on"`
	// MaxAge is a duration. Empty means no limit.
	MaxAge string `json:"max_age,omitempty"`
	// WorkQueues has an object for each work queue, which is empty unless the queue has its own settings.
	WorkQueues map[string]WorkerQueue `json:"work_queues"`
}

// WorkerQueue describes one work queue for the sidecar.
type WorkerQueue struct {
	// MaxAttempts replaces the pipeline's value. Zero keeps the pipeline's value.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// FailedQueue is the work queue's own failed queue, with an empty name if it has none. Messages reach it by its
	// binding, so only counts of messages need it.
	FailedQueue WorkerFailedQueue `json:"failed_queue,omitzero"`
}

// WorkerFailedQueue is the own failed queue of a work queue.
type WorkerFailedQueue struct {
	Name string `json:"name"`
	// Declare says that the pipeline or an attachment declares the queue. Frequent looks then delete no message.
	Declare bool `json:"declare"`
}

// DeclaresFailedQueue reports whether the pipeline declares this failed queue for a work queue.
func (w Worker) DeclaresFailedQueue(queue string) bool {
	for _, workQueue := range w.WorkQueues {
		if workQueue.FailedQueue == (WorkerFailedQueue{queue, true}) {
			return true
		}
	}
	return false
}

// Queue is a queue and its role in a pipeline.
type Queue struct {
	Name string
	Role Role
}

// Role is the role of a queue in a pipeline.
type Role string

// Roles of queues, spelled as in metrics.
const (
	RoleInbox    Role = "inbox"
	RoleRetry    Role = "retry"
	RoleFailed   Role = "failed"
	RoleRefused  Role = "refused"
	RoleLevel    Role = "level"
	RoleUnrouted Role = "unrouted"
)

// Queues lists the queues where the pipeline's messages wait or end.
func (w Worker) Queues() []Queue {
	n := Names(w.Name)
	queues := []Queue{{n.Inbox(), RoleInbox}, {n.RefusedQueue(), RoleRefused}, {n.FailedQueue(), RoleFailed}}
	add := func(q Queue) {
		if !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	for _, spelled := range w.Delays {
		// A delay of 0s needs no queue.
		if delay, err := ParseDelay(spelled); err == nil && delay > 0 {
			add(Queue{n.RetryQueue(delay), RoleRetry})
		}
	}
	for _, name := range w.FailedQueues() {
		add(Queue{name, RoleFailed})
	}
	return queues
}

// GivesUpAfter returns [Pipeline.GivesUpAfter] for the work queue with the most attempts.
func (w Worker) GivesUpAfter() time.Duration {
	p := Pipeline{MaxAttempts: w.MaxAttempts}
	for _, queue := range w.WorkQueues {
		p.MaxAttempts = max(p.MaxAttempts, queue.MaxAttempts)
	}
	for _, spelled := range w.Delays {
		wait, _ := ParseDelay(spelled) // always valid
		p.Delays = append(p.Delays, Delay{Wait: wait})
	}
	p.MaxAge.Wait, _ = ParseMaxAge(w.MaxAge)
	return p.GivesUpAfter()
}

// FailedQueues lists the own failed queues of work queues.
func (w Worker) FailedQueues() []string {
	var names []string
	for _, queue := range w.WorkQueues {
		if queue.FailedQueue.Name != "" {
			names = append(names, queue.FailedQueue.Name)
		}
	}
	return topology.Distinct(names)
}
