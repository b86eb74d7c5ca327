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

// Kinds of summaries.
const (
	KindPipeline = "pipeline"
	KindDelayed  = "delayed exchange"
)

// Configured are all pipelines and delayed exchanges of a configuration, or those in one vhost unless vhost is "".
func Configured(b amqpconn.Brokers, config workerconfig.Config, vhost string) (all []Summary) {
	for i := range config.Pipelines {
		if w := &config.Pipelines[i]; vhost == "" || vhost == w.Vhost {
			all = append(all, ofPipeline(Target{Brokers: b, Vhost: w.Vhost, Worker: w}, w.Name, configured(w)))
		}
	}
	for _, w := range config.DelayedExchanges {
		if vhost == "" || vhost == w.Vhost {
			all = append(all, ofDelayed(Target{Brokers: b, Vhost: w.Vhost}, w.Name, w.Levels()))
		}
	}
	return all
}

// Live are all pipelines and delayed exchanges in a vhost.
func Live(b amqpconn.Brokers, live topology.Topology, vhost string) (all []Summary) {
	t := Target{Brokers: b, Vhost: vhost}
	for _, name := range pipeline.Pipelines(live) {
		all = append(all, livePipeline(t, name, live))
	}
	for _, name := range delayed.Found(live) {
		levels := append([]delayed.Level{}, delayed.Names(name).LevelsIn(live)...)
		all = append(all, ofDelayed(t, name, levels))
	}
	return all
}

func ofPipeline(t Target, name string, queues []QueueStatus) Summary {
	t.Pipeline = pipeline.Names(name)
	t.Name = t.Pipeline.FailedQueue()
	return Summary{Vhost: t.Vhost, Name: name, Kind: KindPipeline, Target: &t, Queues: queues}
}

// ofDelayed is a delayed exchange with these levels, nil if they are not known.
func ofDelayed(t Target, name string, levels []delayed.Level) Summary {
	n := delayed.Names(name)
	t.Delayed, t.Pipeline, t.Name = n, "", n.UnroutedQueue()
	queues := inRole(Receives, n.Inbox())
	for _, l := range levels {
		queues = append(queues, inRole(Waits, n.Level(l))...)
	}
	if levels == nil {
		queues = append(queues, QueueStatus{Queue: name + ".delay.*", Role: Waits, unknown: true})
	} else {
		queues = append(queues, inRole(Waits, n.Refused())...)
	}
	queues = append(queues, inRole(Parks, n.UnroutedQueue())...)
	return Summary{Vhost: t.Vhost, Name: name, Kind: KindDelayed, Target: &t, Queues: queues}
}

func inRole(role Role, names ...string) (queues []QueueStatus) {
	for _, name := range names {
		queues = append(queues, QueueStatus{Queue: name, Role: role})
	}
	return queues
}

// livePipeline has the queues that are found in the vhost.
func livePipeline(t Target, name string, live topology.Topology) Summary {
	n := pipeline.Names(name)
	p, err := pipeline.Recover(name, "", live)
	for _, queue := range pipeline.Attached(n, live) {
		if a, err := pipeline.RecoverAttachment(name, "", queue, live); err == nil {
			p.WorkQueues[queue] = a.WorkQueue
		}
	}
	var inbox, waits []string
	if err != nil || p.HasWorker() {
		inbox = []string{n.Inbox()}
	}
	for _, queue := range slices.Sorted(maps.Keys(live.Queues)) {
		if n.OwnsQueue(queue) && queue != n.Inbox() && queue != n.FailedQueue() {
			waits = append(waits, queue)
		}
	}
	worker := p.Worker()
	t.Worker = &worker
	failedQueues := append([]string{n.FailedQueue()}, p.FailedQueues()...)
	return ofPipeline(t, name, slices.Concat(inRole(Receives, inbox...), inRole(Waits, waits...), inRole(Parks, failedQueues...)))
}

// configured are the queues of a pipeline by its configuration: first the inbox, then waiting queues, then queues of failed messages.
func configured(w *pipeline.Worker) (queues []QueueStatus) {
	roles := map[pipeline.Role]Role{pipeline.RoleInbox: Receives, pipeline.RoleFailed: Parks}
	for _, q := range w.Queues() {
		queues = append(queues, QueueStatus{Queue: q.Name, Role: cmp.Or(roles[q.Role], Waits)})
	}
	slices.SortStableFunc(queues, func(a, b QueueStatus) int { return cmp.Compare(a.Role, b.Role) })
	return queues
}

// Parking adds a queue of failed messages to a pipeline's queues, unless it is among them.
func (s *Summary) Parking(queue string) {
	if s.Kind == KindPipeline && !slices.ContainsFunc(s.Queues, func(q QueueStatus) bool { return q.Queue == queue }) {
		s.Queues = append(s.Queues, inRole(Parks, queue)...)
	}
}

// Named are the pipeline and the delayed exchange with the name of the target's pipeline. The configuration tells which
// ones exist, or else the exchanges that the user can see. Without a pipeline, it is the target's queue.
func (c *Counting) Named(ctx context.Context, t *Target) (all []Summary) {
	if t.Pipeline == "" {
		if conn, err := c.connection(ctx, t); err == nil {
			_ = t.recognize(ctx, conn) // after an error, looks count as harmful
		}
		return []Summary{{Vhost: t.Vhost, Name: t.Name, Target: t, Queues: inRole(Parks, t.Name)}}
	}
	name := string(t.Pipeline)
	isDelayed := t.Delaying != nil || t.Worker == nil && c.exists(ctx, t, delayed.Names(name).UnroutedExchange())
	switch {
	case t.Worker != nil:
		all = append(all, ofPipeline(*t, name, configured(t.Worker)))
	case !isDelayed, t.Delaying == nil && c.exists(ctx, t, t.Pipeline.ReturnExchange()):
		all = append(all, ofPipeline(*t, name, []QueueStatus{
			{Queue: t.Pipeline.Inbox(), Role: Receives, optional: true},
			{Queue: t.Pipeline.RetryExchange() + ".*", Role: Waits, unknown: true},
			{Queue: t.Pipeline.FailedQueue(), Role: Parks},
		}))
	}
	var levels []delayed.Level
	if t.Delaying != nil {
		levels = t.Delaying.Levels()
	}
	if isDelayed {
		all = append(all, ofDelayed(*t, name, levels))
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
