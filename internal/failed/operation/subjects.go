package operation

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Role is the purpose of a queue in a pipeline or a delayed exchange.
type Role int

// Roles of queues.
const (
	// Receives is the role of an inbox, which a worker should consume.
	Receives Role = iota + 1
	// Waits is the role of a queue whose messages wait for the next attempt, or until they are due.
	Waits
	// Parks is the role of a queue of failed messages.
	Parks
)

// Subject is a pipeline or a delayed exchange whose queues are counted, or a single queue.
type Subject struct {
	Target     *Target
	Name, Kind string
	queues     []QueueStatus
}

// Kinds of subjects.
const (
	KindPipeline = "pipeline"
	KindDelayed  = "delayed exchange"
)

// Configured are all pipelines and delayed exchanges of a configuration, or those in one vhost unless vhost is "".
func Configured(b amqpconn.Brokers, config workerconfig.Config, vhost string) (all []Subject) {
	for i := range config.Pipelines {
		if w := &config.Pipelines[i]; vhost == "" || vhost == w.Vhost {
			all = append(all, subject(b, w.Vhost, w.Name, KindPipeline, queuesOfPipeline(pipeline.Names(w.Name), w)))
		}
	}
	for i := range config.DelayedExchanges {
		if w := &config.DelayedExchanges[i]; vhost == "" || vhost == w.Vhost {
			all = append(all, subject(b, w.Vhost, w.Name, KindDelayed, queuesOfDelayed(delayed.Names(w.Name), w)))
		}
	}
	return all
}

// Live are all pipelines and delayed exchanges in a vhost.
func Live(b amqpconn.Brokers, live topology.Topology, vhost string) (all []Subject) {
	for _, name := range pipeline.Pipelines(live) {
		all = append(all, subject(b, vhost, name, KindPipeline, livePipeline(pipeline.Names(name), live)))
	}
	for _, name := range delayed.Found(live) {
		all = append(all, subject(b, vhost, name, KindDelayed, liveDelayed(delayed.Names(name), live)))
	}
	return all
}

func subject(b amqpconn.Brokers, vhost, name, kind string, queues []QueueStatus) Subject {
	t := &Target{Brokers: b, Vhost: vhost}
	if kind == KindPipeline {
		t.Pipeline = pipeline.Names(name)
		t.Name = t.Pipeline.FailedQueue()
	} else {
		t.Delayed = delayed.Names(name)
		t.Name = t.Delayed.UnroutedQueue()
	}
	return Subject{t, name, kind, queues}
}

// livePipeline are the queues of a pipeline, found in the vhost.
func livePipeline(n pipeline.Names, live topology.Topology) []QueueStatus {
	p, err := pipeline.Recover(string(n), "", live)
	for _, queue := range pipeline.Attached(n, live) {
		if a, err := pipeline.RecoverAttachment(string(n), "", queue, live); err == nil {
			p.WorkQueues[queue] = a.WorkQueue
		}
	}
	var queues []QueueStatus
	if err != nil || p.HasWorker() {
		queues = append(queues, QueueStatus{Queue: n.Inbox(), Role: Receives})
	}
	for _, queue := range slices.Sorted(maps.Keys(live.Queues)) {
		if n.OwnsQueue(queue) && queue != n.Inbox() && queue != n.FailedQueue() {
			queues = append(queues, QueueStatus{Queue: queue, Role: Waits})
		}
	}
	queues = append(queues, QueueStatus{Queue: n.FailedQueue(), Role: Parks, kept: true})
	for _, queue := range p.FailedQueues() {
		queues = append(queues, QueueStatus{Queue: queue, Role: Parks, kept: slices.Contains(p.DeclaredFailedQueues(), queue)})
	}
	return queues
}

// liveDelayed are the queues of a delayed exchange, found in the vhost.
func liveDelayed(n delayed.Names, live topology.Topology) []QueueStatus {
	queues := []QueueStatus{{Queue: n.Inbox(), Role: Receives}}
	for _, l := range n.LevelsIn(live) {
		queues = append(queues, QueueStatus{Queue: n.Level(l), Role: Waits, longest: l.Longest()})
	}
	return append(queues, QueueStatus{Queue: n.Refused(), Role: Waits},
		QueueStatus{Queue: n.UnroutedQueue(), Role: Parks, kept: true})
}

// queuesOfPipeline are a pipeline's queues by its configuration. If the configuration is nil, names that are not known are
// patterns.
func queuesOfPipeline(n pipeline.Names, worker *pipeline.Worker) []QueueStatus {
	if worker == nil {
		return []QueueStatus{
			{Queue: n.Inbox(), Role: Receives, optional: true},
			{Queue: n.RetryExchange() + ".*", Role: Waits, unknown: true},
			{Queue: n.FailedQueue(), Role: Parks, kept: true},
		}
	}
	return inOrder(worker.Queues(), func(q QueueStatus) QueueStatus {
		q.kept = q.Queue == n.FailedQueue() || worker.DeclaresFailedQueue(q.Queue)
		return q
	})
}

// inOrder sorts the queues: first inboxes, then waiting queues, then queues of failed messages.
func inOrder(queues []pipeline.Queue, with func(QueueStatus) QueueStatus) []QueueStatus {
	roles := map[pipeline.Role]Role{pipeline.RoleInbox: Receives, pipeline.RoleFailed: Parks, pipeline.RoleUnrouted: Parks}
	ordered := make([]QueueStatus, len(queues))
	for i, q := range queues {
		ordered[i] = with(QueueStatus{Queue: q.Name, Role: cmp.Or(roles[q.Role], Waits)})
	}
	slices.SortStableFunc(ordered, func(a, b QueueStatus) int { return cmp.Compare(a.Role, b.Role) })
	return ordered
}

// queuesOfDelayed are a delayed exchange's queues by its configuration. If the configuration is nil, the levels are a
// pattern.
func queuesOfDelayed(n delayed.Names, worker *delayed.Worker) []QueueStatus {
	if worker == nil {
		return []QueueStatus{
			{Queue: n.Inbox(), Role: Receives},
			{Queue: string(n) + ".delay.*", Role: Waits, unknown: true},
			{Queue: n.UnroutedQueue(), Role: Parks, kept: true},
		}
	}
	return inOrder(worker.Queues(), func(q QueueStatus) QueueStatus {
		if level, is := n.LevelOf(q.Queue); is {
			q.longest = level.Longest()
		}
		q.kept = q.Role == Parks
		return q
	})
}

// Parking adds a queue of failed messages to a pipeline's queues, unless it is among them.
func (s *Subject) Parking(queue string) {
	if s.Kind == KindPipeline && !slices.ContainsFunc(s.queues, func(q QueueStatus) bool { return q.Queue == queue }) {
		s.queues = append(s.queues, QueueStatus{Queue: queue, Role: Parks})
	}
}

// Subjects are the pipeline and the delayed exchange with the name of the target's pipeline. The configuration tells which
// ones exist, or else the exchanges that the user can see. Without a pipeline, the target's queue is the subject.
func (c *Counting) Subjects(ctx context.Context, t *Target) (all []Subject) {
	if t.Pipeline == "" {
		if conn, err := c.connection(ctx, t); err == nil {
			_ = t.recognize(ctx, conn) // after an error, looks count as harmful
		}
		return []Subject{{Target: t, Name: t.Name, queues: []QueueStatus{{Queue: t.Name, Role: Parks, kept: t.Delayed != ""}}}}
	}
	n, isPipeline, isDelayed := delayed.Names(t.Pipeline), t.Worker != nil, t.Delaying != nil
	if !isPipeline && !isDelayed {
		isDelayed = c.exists(ctx, t, n.UnroutedExchange())
		isPipeline = !isDelayed || c.exists(ctx, t, t.Pipeline.ReturnExchange())
	}
	if isPipeline {
		all = append(all, Subject{t, string(n), KindPipeline, queuesOfPipeline(t.Pipeline, t.Worker)})
	}
	if isDelayed {
		all = append(all, Subject{t, string(n), KindDelayed, queuesOfDelayed(n, t.Delaying)})
	}
	return all
}

// exists reports whether the exchange certainly exists.
func (c *Counting) exists(ctx context.Context, t *Target, exchange string) bool {
	conn, err := c.connection(ctx, t)
	if err != nil {
		return false
	}
	is, err := transfer.HasExchange(ctx, conn, exchange)
	return err == nil && is
}
