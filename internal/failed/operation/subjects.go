package operation

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

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

// watched is a queue to count.
type watched struct {
	name string
	role Role
	// longest is how long a new message waits in this and all lower levels at most, 0 if the queue is not a level.
	longest time.Duration
	// kept says that the queue deletes no messages, however often they are read.
	kept bool
	// optional says that some engines do not have this queue, and that the pipeline's engine is not known.
	optional bool
	// unknown says that the name is a pattern, since it is not known which queues there are.
	unknown bool
}

// Subject is a pipeline or a delayed exchange whose queues are counted, or a single queue.
type Subject struct {
	Target     *Target
	Name, Kind string
	queues     []watched
}

// Kinds of subjects.
const (
	KindPipeline = "pipeline"
	KindDelayed  = "delayed exchange"
)

// Configured are all pipelines and delayed exchanges of a configuration, or those in one vhost unless vhost is "".
func (b Brokers) Configured(config workerconfig.Config, vhost string) (all []Subject) {
	for i := range config.Pipelines {
		if w := &config.Pipelines[i]; vhost == "" || vhost == w.Vhost {
			all = append(all, b.subject(w.Vhost, w.Name, KindPipeline, queuesOfPipeline(pipeline.Names(w.Name), w)))
		}
	}
	for i := range config.DelayedExchanges {
		if w := &config.DelayedExchanges[i]; vhost == "" || vhost == w.Vhost {
			all = append(all, b.subject(w.Vhost, w.Name, KindDelayed, queuesOfDelayed(delayed.Names(w.Name), w)))
		}
	}
	return all
}

// Live are all pipelines and delayed exchanges in a vhost.
func (b Brokers) Live(live topology.Topology, vhost string) (all []Subject) {
	for _, name := range pipeline.Pipelines(live) {
		all = append(all, b.subject(vhost, name, KindPipeline, livePipeline(pipeline.Names(name), live)))
	}
	for _, name := range delayed.Found(live) {
		all = append(all, b.subject(vhost, name, KindDelayed, liveDelayed(delayed.Names(name), live)))
	}
	return all
}

func (b Brokers) subject(vhost, name, kind string, queues []watched) Subject {
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
func livePipeline(n pipeline.Names, live topology.Topology) []watched {
	p, err := pipeline.Recover(string(n), "", live)
	for _, queue := range pipeline.Attached(n, live) {
		if a, err := pipeline.RecoverAttachment(string(n), "", queue, live); err == nil {
			p.WorkQueues[queue] = a.WorkQueue
		}
	}
	var queues []watched
	if err != nil || p.HasWorker() {
		queues = append(queues, watched{name: n.Inbox(), role: Receives})
	}
	for _, queue := range slices.Sorted(maps.Keys(live.Queues)) {
		if n.OwnsQueue(queue) && queue != n.Inbox() && queue != n.FailedQueue() {
			queues = append(queues, watched{name: queue, role: Waits})
		}
	}
	queues = append(queues, watched{name: n.FailedQueue(), role: Parks, kept: true})
	for _, queue := range slices.Sorted(maps.Keys(p.FailedQueues())) {
		queues = append(queues, watched{name: queue, role: Parks, kept: slices.Contains(p.DeclaredFailedQueues(), queue)})
	}
	return queues
}

// liveDelayed are the queues of a delayed exchange, found in the vhost.
func liveDelayed(n delayed.Names, live topology.Topology) []watched {
	queues := []watched{{name: n.Inbox(), role: Receives}}
	for _, l := range n.LevelsIn(live) {
		queues = append(queues, watched{name: n.Level(l), role: Waits, longest: l.Longest()})
	}
	return append(queues, watched{name: n.Refused(), role: Waits}, watched{name: n.UnroutedQueue(), role: Parks, kept: true})
}

// queuesOfPipeline are a pipeline's queues by its configuration. If the configuration is nil, names that are not known are
// patterns.
func queuesOfPipeline(n pipeline.Names, worker *pipeline.Worker) []watched {
	if worker == nil {
		return []watched{
			{name: n.Inbox(), role: Receives, optional: true},
			{name: n.RetryExchange() + ".*", role: Waits, unknown: true},
			{name: n.FailedQueue(), role: Parks, kept: true},
		}
	}
	return inOrder(worker.Queues(), func(w watched) watched {
		w.kept = w.name == n.FailedQueue() || worker.DeclaresFailedQueue(w.name)
		return w
	})
}

// inOrder sorts the queues: first inboxes, then waiting queues, then queues of failed messages.
func inOrder(queues []pipeline.Queue, with func(watched) watched) []watched {
	roles := map[pipeline.Role]Role{pipeline.RoleInbox: Receives, pipeline.RoleFailed: Parks, pipeline.RoleUnrouted: Parks}
	ordered := make([]watched, len(queues))
	for i, q := range queues {
		ordered[i] = with(watched{name: q.Name, role: cmp.Or(roles[q.Role], Waits)})
	}
	slices.SortStableFunc(ordered, func(a, b watched) int { return cmp.Compare(a.role, b.role) })
	return ordered
}

// queuesOfDelayed are a delayed exchange's queues by its configuration. If the configuration is nil, the levels are a
// pattern.
func queuesOfDelayed(n delayed.Names, worker *delayed.Worker) []watched {
	if worker == nil {
		return []watched{
			{name: n.Inbox(), role: Receives},
			{name: string(n) + ".delay.*", role: Waits, unknown: true},
			{name: n.UnroutedQueue(), role: Parks, kept: true},
		}
	}
	return inOrder(worker.Queues(), func(w watched) watched {
		if level, is := n.LevelOf(w.name); is {
			w.longest = level.Longest()
		}
		w.kept = w.role == Parks
		return w
	})
}

// Parking adds a queue of failed messages to a pipeline's queues, unless it is among them.
func (s *Subject) Parking(queue string) {
	if s.Kind == KindPipeline && !slices.ContainsFunc(s.queues, func(w watched) bool { return w.name == queue }) {
		s.queues = append(s.queues, watched{name: queue, role: Parks})
	}
}

// Subjects are the pipeline and the delayed exchange with the name of the target's pipeline. The configuration tells which
// ones exist, or else the exchanges that the user can see. Without a pipeline, the target's queue is the subject.
func (c *Counting) Subjects(ctx context.Context, t *Target) (all []Subject) {
	if t.Pipeline == "" {
		return []Subject{{Target: t, Name: t.Name, queues: []watched{{name: t.Name, role: Parks, kept: t.Delayed != ""}}}}
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
