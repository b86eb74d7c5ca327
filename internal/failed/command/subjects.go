package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// role is what a queue of a pipeline or a delayed exchange is for.
type role int

const (
	// receiving are inboxes, which somebody should consume.
	receiving role = iota + 1
	waits
	parks
)

// watched is a queue that is counted.
type watched struct {
	name string
	role role
	// longest is how long a message that comes now is under way at most, 0 if it does not wait in a level.
	longest time.Duration
	// kept says that it deletes nothing, however often it is looked at.
	kept bool
	// optional says that some engines have no such queue, and which one this is is not known.
	optional bool
	// unknown says that the name is a pattern: which queues there are is not known.
	unknown bool
}

// subject is a pipeline or a delayed exchange whose queues are counted, or a queue of neither.
type subject struct {
	target     *target
	name, kind string
	queues     []watched
}

const (
	kindPipeline = "pipeline"
	kindDelayed  = "delayed exchange"
)

func (t *targetFlags) target(vhost string) *target {
	p := &target{Vhost: vhost, named: t.vhost != "", brokers: t.connection.Brokers, version: t.caller.version}
	p.Open = p.open
	return p
}

// subjects are all pipelines and delayed exchanges of the vhost, by the management API, or else of the configuration.
func (t *targetFlags) subjects(ctx context.Context) ([]subject, error) {
	uris, err := t.connection.Brokers()
	if err != nil {
		return nil, err
	}
	if t.managed() {
		return t.subjectsOfVhost(ctx, cmp.Or(t.vhost, uris[0].Vhost()))
	}
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	if !t.source.Given() {
		return nil, noPipeline(config)
	}
	var all []subject
	for i := range config.Pipelines {
		if w := &config.Pipelines[i]; t.vhost == "" || t.vhost == w.Vhost {
			all = append(all, subject{t.target(w.Vhost), w.Name, kindPipeline, queuesOfPipeline(pipeline.Names(w.Name), w)})
		}
	}
	for i := range config.DelayedExchanges {
		if w := &config.DelayedExchanges[i]; t.vhost == "" || t.vhost == w.Vhost {
			all = append(all, subject{t.target(w.Vhost), w.Name, kindDelayed, queuesOfDelayed(delayed.Names(w.Name), w)})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("--vhost: the configuration has nothing in %q", t.vhost)
	}
	return all, nil
}

// managed reports whether the address of the management API is given.
func (t *targetFlags) managed() bool {
	return t.endpoint != "" || t.caller.getenv(cli.EnvEndpoint) != ""
}

// subjectsOfVhost are those that the broker has.
func (t *targetFlags) subjectsOfVhost(ctx context.Context, vhost string) ([]subject, error) {
	client, err := t.connection.Management(t.endpoint)
	if err != nil {
		return nil, err
	}
	live, err := client.List(ctx, vhost)
	if err != nil {
		return nil, cli.RuntimeError{Err: fmt.Errorf("read vhost %q by the management API (--vhost, $%s): %w", vhost, cli.EnvEndpoint, err)}
	}
	var all []subject
	target := t.target(vhost)
	for _, name := range pipeline.Pipelines(live.Topology) {
		all = append(all, subject{target, name, kindPipeline, livePipeline(pipeline.Names(name), live.Topology)})
	}
	for _, name := range delayed.Found(live.Topology) {
		all = append(all, subject{target, name, kindDelayed, liveDelayed(delayed.Names(name), live.Topology)})
	}
	return all, nil
}

// livePipeline are the queues of a pipeline that is in the vhost.
func livePipeline(n pipeline.Names, live topology.Topology) []watched {
	p, err := pipeline.Recover(string(n), "", live)
	for _, queue := range pipeline.Attached(n, live) {
		if a, err := pipeline.RecoverAttachment(string(n), "", queue, live); err == nil {
			p.WorkQueues[queue] = a.WorkQueue
		}
	}
	var queues []watched
	if err != nil || p.HasWorker() {
		queues = append(queues, watched{name: n.Inbox(), role: receiving})
	}
	for _, queue := range slices.Sorted(maps.Keys(live.Queues)) {
		if n.OwnsQueue(queue) && queue != n.Inbox() && queue != n.FailedQueue() {
			queues = append(queues, watched{name: queue, role: waits})
		}
	}
	queues = append(queues, watched{name: n.FailedQueue(), role: parks, kept: true})
	for _, queue := range slices.Sorted(maps.Keys(p.FailedQueues())) {
		queues = append(queues, watched{name: queue, role: parks, kept: slices.Contains(p.DeclaredFailedQueues(), queue)})
	}
	return queues
}

// liveDelayed are the queues of a delayed exchange that is in the vhost.
func liveDelayed(n delayed.Names, live topology.Topology) []watched {
	queues := []watched{{name: n.Inbox(), role: receiving}}
	for _, l := range n.LevelsIn(live) {
		queues = append(queues, watched{name: n.Level(l), role: waits, longest: l.Longest()})
	}
	return append(queues, watched{name: n.Refused(), role: waits}, watched{name: n.UnroutedQueue(), role: parks, kept: true})
}

// queuesOfPipeline are the queues of a pipeline by its configuration, nil if that is not known.
func queuesOfPipeline(n pipeline.Names, worker *pipeline.Worker) []watched {
	if worker == nil {
		return []watched{
			{name: n.Inbox(), role: receiving, optional: true},
			{name: n.RetryExchange() + ".*", role: waits, unknown: true},
			{name: n.FailedQueue(), role: parks, kept: true},
		}
	}
	return inOrder(worker.Queues(), func(w watched) watched {
		w.kept = w.name == n.FailedQueue() || worker.DeclaresFailedQueue(w.name)
		return w
	})
}

// inOrder are the queues that messages come to first, then those in which they wait, then those where they end.
func inOrder(queues []pipeline.Queue, with func(watched) watched) []watched {
	roles := map[pipeline.Role]role{pipeline.RoleInbox: receiving, pipeline.RoleFailed: parks, pipeline.RoleUnrouted: parks}
	ordered := make([]watched, len(queues))
	for i, q := range queues {
		ordered[i] = with(watched{name: q.Name, role: cmp.Or(roles[q.Role], waits)})
	}
	slices.SortStableFunc(ordered, func(a, b watched) int { return cmp.Compare(a.role, b.role) })
	return ordered
}

// queuesOfDelayed are the queues of a delayed exchange by its configuration, nil if that is not known.
func queuesOfDelayed(n delayed.Names, worker *delayed.Worker) []watched {
	if worker == nil {
		return []watched{
			{name: n.Inbox(), role: receiving},
			{name: string(n) + ".delay.*", role: waits, unknown: true},
			{name: n.UnroutedQueue(), role: parks, kept: true},
		}
	}
	return inOrder(worker.Queues(), func(w watched) watched {
		if level, is := n.LevelOf(w.name); is {
			w.longest = level.Longest()
		}
		w.kept = w.role == parks
		return w
	})
}

// subjectsNamed are the pipeline, the delayed exchange of that name, or the queue that was named.
func (t *targetFlags) subjectsNamed(ctx context.Context, args []string) ([]subject, error) {
	p, _, err := t.locate(args, 0)
	if err != nil {
		return nil, err
	}
	if p.Pipeline == "" {
		return []subject{{target: p, name: p.Name, queues: []watched{{name: p.Name, role: parks, kept: p.Delayed != ""}}}}, nil
	}
	var named []subject
	if t.managed() {
		all, err := t.subjectsOfVhost(ctx, p.Vhost)
		if err != nil {
			return nil, err
		}
		named = slices.DeleteFunc(all, func(s subject) bool { return s.name != string(p.Pipeline) })
		if len(named) == 0 {
			return nil, fmt.Errorf("there is no pipeline or delayed exchange %q in the vhost %q (--vhost)", p.Pipeline, p.Vhost)
		}
	} else {
		named = p.subjects(ctx)
	}
	for i := range named {
		named[i].target = p
	}
	if !slices.ContainsFunc(named[0].queues, func(w watched) bool { return w.name == p.Name }) && named[0].kind == kindPipeline {
		named[0].queues = append(named[0].queues, watched{name: p.Name, role: parks})
	}
	return named, nil
}

// subjects are what has the name, by the configuration or else by the exchanges that the user may see.
func (p *target) subjects(ctx context.Context) []subject {
	n := delayed.Names(p.Pipeline)
	ofPipeline := subject{p, string(n), kindPipeline, queuesOfPipeline(p.Pipeline, p.Worker)}
	ofDelayed := subject{p, string(n), kindDelayed, queuesOfDelayed(n, p.Delaying)}
	switch {
	case p.Delaying != nil && p.Worker == nil:
		return []subject{ofDelayed}
	case p.Delaying != nil:
		return []subject{ofPipeline, ofDelayed}
	case p.Worker != nil || !p.exists(ctx, n.UnroutedExchange()):
		return []subject{ofPipeline}
	case !p.exists(ctx, p.Pipeline.ReturnExchange()):
		return []subject{ofDelayed}
	}
	return []subject{ofPipeline, ofDelayed}
}

// exists reports whether there is certainly such an exchange.
func (p *target) exists(ctx context.Context, exchange string) bool {
	is, err := p.HasExchange(ctx, exchange)
	return err == nil && is
}
