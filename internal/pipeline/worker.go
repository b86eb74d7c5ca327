package pipeline

import (
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

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
	// FailedQueue has the queue's failed messages, its name is "" if the pipeline's has. Messages find it by its binding: this is for
	// those who count them.
	FailedQueue WorkerFailedQueue `json:"failed_queue,omitzero"`
}

// WorkerFailedQueue is a queue that has the failed messages of a work queue.
type WorkerFailedQueue struct {
	Name string `json:"name"`
	// Declare says that the pipeline, or an attachment, declares it: it deletes nothing, however often somebody looks at it.
	Declare bool `json:"declare"`
}

// DeclaresFailedQueue reports whether the pipeline declares this queue for the failed messages of work queues.
func (w Worker) DeclaresFailedQueue(queue string) bool {
	for _, workQueue := range w.WorkQueues {
		if workQueue.FailedQueue == (WorkerFailedQueue{queue, true}) {
			return true
		}
	}
	return false
}

// Queue is a queue and what it is for.
type Queue struct {
	Name string
	Role Role
}

// Role is what a queue is for.
type Role string

// Roles of queues, as metrics call them.
const (
	RoleInbox    Role = "inbox"
	RoleRetry    Role = "retry"
	RoleFailed   Role = "failed"
	RoleRefused  Role = "refused"
	RoleLevel    Role = "level"
	RoleUnrouted Role = "unrouted"
)

// Queues are those in which the pipeline's messages wait or end.
func (w Worker) Queues() []Queue {
	n := Names(w.Name)
	queues := []Queue{{n.Inbox(), RoleInbox}, {n.RefusedQueue(), RoleRefused}, {n.FailedQueue(), RoleFailed}}
	add := func(q Queue) {
		if !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	for _, spelled := range w.Delays {
		// A delay of 0s has no queue.
		if delay, err := ParseDelay(spelled); err == nil && delay > 0 {
			add(Queue{n.RetryQueue(delay), RoleRetry})
		}
	}
	for _, name := range w.FailedQueues() {
		add(Queue{name, RoleFailed})
	}
	return queues
}

// GivesUpAfter is [Pipeline.GivesUpAfter] of the work queue with the most attempts.
func (w Worker) GivesUpAfter() time.Duration {
	p := Pipeline{MaxAttempts: w.MaxAttempts}
	for _, queue := range w.WorkQueues {
		p.MaxAttempts = max(p.MaxAttempts, queue.MaxAttempts)
	}
	for _, spelled := range w.Delays {
		wait, _ := ParseDelay(spelled) // is valid
		p.Delays = append(p.Delays, Delay{Wait: wait})
	}
	p.MaxAge.Wait, _ = ParseMaxAge(w.MaxAge)
	return p.GivesUpAfter()
}

// FailedQueues lists the failed queues of work queues.
func (w Worker) FailedQueues() []string {
	var names []string
	for _, queue := range w.WorkQueues {
		if queue.FailedQueue.Name != "" {
			names = append(names, queue.FailedQueue.Name)
		}
	}
	return topology.Distinct(names)
}
