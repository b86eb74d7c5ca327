package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// checkFailedQueue checks the failed queue of one work queue without a broker.
func checkFailedQueue(place func(...any) Path, p pipeline.Names, name string, w pipeline.WorkQueue) []Problem {
	at, queue := place("failed_queue", "name"), w.FailedQueue
	switch {
	case queue == "":
		return nil
	case queue == name:
		return []Problem{problem(at, "Failed queue is the work queue",
			"%q would get its own failed messages, which would fail again and again. Name another queue.", queue)}
	case p != "" && (p.OwnsQueue(queue) || p.CoversQueue(queue)):
		return []Problem{problem(at, "Failed queue belongs to the pipeline",
			"%q is one of the pipeline's own queues. "+
				"Name another queue; without failed_queue, failed messages go to the pipeline's failed queue.", queue)}
	case w.DeclaresFailedQueue() && strings.HasPrefix(queue, "amq."):
		return []Problem{problem(at, "Reserved queue name", reservedByBrokers, queue)}
	}
	return rules.CheckAnyQueueName(at, queue)
}

// CheckFailedQueues checks the failed queues of all work queues together.
func CheckFailedQueues(p pipeline.Pipeline) []Problem {
	var problems []Problem
	declared := p.DeclaredFailedQueues()
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		w, at := p.WorkQueues[name], Path{"work_queues", MapKey(name), "failed_queue", "name"}
		if w.FailedQueue == "" || w.FailedQueue == name {
			continue
		}
		if _, isWork := p.WorkQueues[w.FailedQueue]; isWork {
			problems = append(problems, problem(at, "Failed queue is a work queue",
				"%q is a work queue of this pipeline: the failed messages of %q would be retried there, and fail again. "+
					"Name another queue.", w.FailedQueue, name))
		}
		if w.ForeignFailedQueue && slices.Contains(declared, w.FailedQueue) {
			problems = append(problems, problem(at, "Failed queue with two values of declare",
				"Another work queue of this pipeline declares %q, but %q has declare = false for it. "+
					"Write the same for both.", w.FailedQueue, name))
		}
		detail := tooLong(p.Vhost, w.FailedQueue, p.QueueType)
		if detail != "" && w.DeclaresFailedQueue() && len(w.FailedQueue) <= rules.MaxName {
			problems = append(problems, problem(at, "Name too long", "For the failed queue %q, %s.", w.FailedQueue, detail))
		}
	}
	return problems
}

// checkFailedQueue finds reasons why the failed queue cannot take the work queue's failed messages.
func (q liveWorkQueue) checkFailedQueue(f *Findings) {
	name := q.FailedQueue
	if name == "" {
		return
	}
	at, n := q.at("failed_queue", "name"), q.pipeline.Names()
	attached := func(b topology.Binding) bool { return pipeline.AttachedBy(b) == string(n) }
	owners := q.vhost.others.OwnersOf(name)
	live, exists := q.vhost.Queues[name]
	switch {
	case len(owners) > 0 && owners[0].AsWorkQueue:
		f.refuse(at, "Failed queue is a work queue", failedQueueIsWorkQueueOf, name, owners[0].Pipeline)
	case len(owners) > 0:
		f.refuse(at, "Failed queue belongs to another pipeline",
			"%q is one of the own queues of the pipeline %q. Name another queue.", name, owners[0].Pipeline)
	case slices.ContainsFunc(q.vhost.bindings[name], attached):
		f.refuse(at, "Failed queue is a work queue", failedQueueIsWorkQueueOf, name, n)
	case !q.ForeignFailedQueue:
	case !exists:
		f.missing(q.at()[:1], "Failed queues do not exist",
			"These failed queues have declare = false, but are not on the broker:", name,
			"Make them first, or leave declare = false out of failed_queue, so that they are created.", q.vhost.Vhost)
	case live.Exclusive || live.AutoDelete || live.Transient || live.Type == "stream":
		f.refuse(at, "Failed queue keeps no messages",
			"Queue %q is a stream, exclusive, auto-delete or not durable: "+
				"failed messages would not stay in it, or could not be replayed from it. Name a durable quorum or classic queue.", name)
	default:
		settings := topology.Settings{Queue: live}
		settings.Policies, _ = q.vhost.policies.Queue(name, live.Type, q.vhost.Version)
		if exchange, _ := settings.Text("dead-letter-exchange"); n.Retries(exchange) {
			f.refuse(at, "Failed queue is retried",
				"Queue %q dead-letters to %q. Messages that are rejected there would be retried, and come back when they fail. "+
					"Remove its dead-letter exchange, or name another queue.", name, exchange)
		}
	}
}

// checkParkedIn refuses a work queue that is also a failed queue. Its failed messages would be retried and fail again.
func (q liveWorkQueue) checkParkedIn(f *Findings) {
	for _, n := range q.vhost.parked[q.name] {
		f.refuse(q.at(), "Work queue is a failed queue",
			"Queue %q gets failed messages of the pipeline %q, which would be retried here, and fail again. "+
				"Name another queue as failed_queue there, or leave this one out.", q.name, n)
	}
}

// checkFailedQueuesExist finds newly declared failed queues that already exist with other properties.
func checkFailedQueuesExist(f *Findings, at Path, p, before pipeline.Pipeline, wanted map[string]topology.Queue, vhost topology.Topology) {
	had, pipelines := before.DeclaredFailedQueues(), pipeline.Pipelines(vhost)
	const ifMeant = "\n\nIf you mean these queues, write declare = false in failed_queue: then they stay. Otherwise choose other names."
	all := Finding{
		problem(at, "Failed queues exist already", "These failed queues would be created, but exist already:"),
		InTheWay, ifMeant + "\n\nApply fails unless they are deleted first.", ifMeant + nothingChanged,
	}
	for _, name := range p.DeclaredFailedQueues() {
		is, exists := vhost.Queues[name]
		if _, stays := slices.BinarySearch(had, name); exists && !stays && !wanted[name].Equal(is) {
			if by, _ := is.Arguments[pipeline.DeclaredByArgument].(string); by != "" && !slices.Contains(pipelines, by) {
				name += fmt.Sprintf(", left by the pipeline %q, which no longer exists", by)
			}
			f.list(all, "- "+name)
		}
	}
}

const failedQueueIsWorkQueueOf = "%q is a work queue of the pipeline %q: failed messages would be retried there, and fail again. " +
	"Name another queue."
