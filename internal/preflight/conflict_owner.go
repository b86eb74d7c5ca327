package preflight

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// checkOwners finds other pipelines that have the queue. It reports whether this pipeline can still have it.
func (q liveWorkQueue) checkOwners(f *Findings) bool {
	owners := q.vhost.others.OwnersOf(q.name)
	for _, owner := range owners {
		if owner.Undefined {
			f.warn(q.at(), "Definition of another pipeline is gone", undefinedOwner, owner.Pipeline, q.name,
				owner.Pipeline.DeadLetterExchange(), owner.Pipeline.Inbox(), owner.Pipeline, owner.Pipeline.ReturnExchange())
		}
	}
	if giver, taker, moves := moveAmong(owners); moves && !q.attachedBefore {
		f.add(Owned, q.at(), "Queue is being moved already", moveOfOthers, q.name, giver, taker, giver, taker, taker)
		return false
	}
	for _, owner := range owners {
		switch {
		case !owner.AsWorkQueue:
			f.add(q.orNotice(Owned), q.at(), "Queue of another pipeline",
				"Queue %q is one of the own queues of the pipeline %q. Leave it out.", q.name, owner.Pipeline)
			return false
		case q.TakeOverFrom == string(owner.Pipeline):
			q.checkTakeOver(f, owner)
		case q.TakeOverFrom == "" && q.takenOverFrom == string(owner.Pipeline):
			f.refuse(q.at("take_over_from"), "Queue has not been taken over yet", notTakenOverYet, q.name, owner.Pipeline, owner.Pipeline)
			return false
		case owner.TakesOverFrom == q.pipeline.Name && q.attachedBefore:
			q.checkBeingTakenOver(f, owner.Pipeline)
		default:
			f.add(q.orNotice(Owned), q.at(), "Queue of another pipeline", workQueueOfAnother,
				q.name, owner.Pipeline, owner.Pipeline, owner.Pipeline, owner.Pipeline)
			return false
		}
	}
	return true
}

// ofAnybody returns all policies that match the queue, strongest first.
func (q liveWorkQueue) ofAnybody() []topology.NamedPolicy {
	policies, _ := q.vhost.all().Queue(q.name, q.live.Type, q.vhost.Version)
	return policies
}

// moveAmong finds a move of the queue between two other pipelines.
func moveAmong(owners []pipeline.QueueOwner) (giver, taker pipeline.Names, moves bool) {
	for _, owner := range owners {
		if slices.ContainsFunc(owners, func(o pipeline.QueueOwner) bool { return string(o.Pipeline) == owner.TakesOverFrom }) {
			return pipeline.Names(owner.TakesOverFrom), owner.Pipeline, true
		}
	}
	return "", "", false
}

// orNotice returns the cause for a queue that is new here. An attached queue gets a Notice, because an error would
// block every change.
func (q liveWorkQueue) orNotice(cause Cause) Cause {
	if q.attachedBefore {
		return Notice
	}
	return cause
}

// checkTakeOver finds conflicts with the pipeline that has the queue. Its policy can take precedence, or have keys that
// would no longer apply. If it declares the queue, it deletes the queue when it releases it.
func (q liveWorkQueue) checkTakeOver(f *Findings, owner pipeline.QueueOwner) {
	bound := topology.Topology{Queues: q.vhost.Queues, Bindings: q.vhost.bindings[q.name]}
	if owner.Pipeline.Declares(q.name, bound) {
		f.add(Owned, q.at("take_over_from"), "The other pipeline declares the queue",
			"The pipeline %q declares queue %q, and deletes the queue when it releases it. "+
				"Set declare = false there first, in a separate apply, so that the queue stays.", owner.Pipeline, q.name)
	}
	theirs, found := pipeline.StrongestPolicy(owner.Pipeline, q.ofAnybody())
	if !found {
		return
	}
	if ours := q.pipeline.PriorityOf(q.name); theirs.Priority >= ours {
		q.refusePriority(f, owner, theirs, ours)
	}
	extra := maps.Clone(theirs.Definition)
	_, delays := extra["delayed-retry-type"] // then the limit is how the pipeline counts
	if ours := q.pipeline.Facts().InQueue; ours != delays && !q.attachedBefore {
		f.warn(q.at("take_over_from"), "Consumers must make another call",
			"After the take-over, consumers of %q call the method that was right for %q until they are changed. "+
				"Messages that fail meanwhile are parked without a retry. Before this apply, make the consumers keep a failed "+
				"message for a second, and then call basic.nack with requeue=true. RabbitMQ 4.3 does not count that call, and "+
				"it is right for both engines. After this apply, make them call what this pipeline needs. The guide \"Changing, "+
				"moving, importing, destroying\" has the steps. If nothing is consumed from %q meanwhile, you need do nothing.",
			q.name, owner.Pipeline, q.name)
	}
	maps.DeleteFunc(extra, func(key string, value any) bool {
		return strings.HasPrefix(key, "dead-letter-") || key == "overflow" && value == "reject-publish" ||
			delays && (key == "delivery-limit" || strings.HasPrefix(key, "delayed-retry-"))
	})
	theirs.Definition = extra
	q.checkShadowed(f, theirs, Owned)
}

// refusePriority refuses a policy of the other pipeline that would take precedence. Usually the other pipeline took the
// queue over itself.
func (q liveWorkQueue) refusePriority(f *Findings, owner pipeline.QueueOwner, theirs topology.NamedPolicy, ours int) {
	switch {
	case owner.TakesOverFrom == q.pipeline.Name && q.attachedBefore:
		f.add(Owned, q.at("take_over_from"), "Queue is being taken over",
			"The pipeline %q takes queue %q over from this one. To cancel the move, remove the queue from %q, "+
				"and leave take_over_from out here: this pipeline still has the queue. "+
				"To complete the move, remove the queue here. Before the queue can come back, remove take_over_from in %q.",
			owner.Pipeline, q.name, owner.Pipeline, owner.Pipeline)
	case owner.TakesOverFrom != "":
		f.add(Owned, q.at("take_over_from"), "The other pipeline still takes the queue over",
			"The pipeline %q has queue %q with take_over_from = %q, which raises the priority of its policy to %d. "+
				"Remove take_over_from in %q first, in a separate apply.",
			owner.Pipeline, q.name, owner.TakesOverFrom, theirs.Priority, owner.Pipeline)
	default:
		f.add(Owned, Path{"policy_priority"}, "The other pipeline's policy would take precedence",
			"Queue %q would be taken over with priority %d, but the policy %q of the pipeline %q has priority %d. "+
				"The pipeline that takes over needs a higher priority. Write:\n\n  policy_priority = %d",
			q.name, ours, theirs.Name, owner.Pipeline, theirs.Priority, theirs.Priority)
	}
}

// checkBeingTakenOver finds a policy that would win the queue back from the pipeline that takes it over.
func (q liveWorkQueue) checkBeingTakenOver(f *Findings, taker pipeline.Names) {
	theirs, found := pipeline.StrongestPolicy(taker, q.ofAnybody())
	if ours := q.pipeline.PriorityOf(q.name); found && ours >= theirs.Priority {
		f.refuse(Path{"policy_priority"}, "The pipeline's policy would take precedence",
			"The pipeline %q takes queue %q over with priority %d, and this pipeline's policy would have %d. "+
				"Keep policy_priority at %d or less until the queue is removed here.", taker, q.name, theirs.Priority, ours, theirs.Priority-1)
		return
	}
	f.warn(q.at(), "Queue is being taken over",
		"The pipeline %q takes queue %q over from this one, and gets its rejected messages from now on. "+
			"To complete the move, remove the queue here with the next apply. Keep this pipeline's sidecar running "+
			"until no message waits here. To cancel the move, remove the queue from %q instead.", taker, q.name, taker)
}

// warnOfTwo says how a hand-over ends. The plan that begins the hand-over has no such warning. If it also ends it, the
// owner that releases the queue gets the warning.
func (q liveWorkQueue) warnOfTwo(f *Findings, detail string, args ...any) {
	if q.had {
		f.warn(q.at(), "Queue is attached twice", detail+" This hands a queue over without losing a message. "+
			"If this plan does not end the hand-over, remove the queue from one of the two.", args...)
	}
}

// checkHandOver checks a queue that both the pipeline and an attachment attach. Either policy can apply, and the weaker
// one would delete pending dead letters.
func (q liveWorkQueue) checkHandOver(f *Findings, theirs topology.Policy, exists bool, by string) {
	ours := topology.Arguments{}
	if q.ByPolicy() {
		ours = q.pipeline.PolicyContent(q.name)
	}
	if exists && !ours.Equal(theirs.Definition) {
		f.refuse(q.at(), "Queue is attached twice, differently",
			"Queue %q is attached by %s with %s, and would be attached here with %s. "+
				"While both exist, it is undefined which of them applies. "+
				"Attach it in the same way first, and change it once the other has released the queue.",
			q.name, by, hcl(theirs.Definition), hcl(ours))
	}
	for _, failedQueue := range q.pipeline.Names().FailedQueuesOf(q.name, q.vhost.Topology) {
		if q.FailedQueue != "" && q.FailedQueue != failedQueue {
			f.refuse(q.at("failed_queue"), "Failed messages would be parked twice",
				"Failed messages of queue %q already go to %q, by %s, and each would be in both queues. Write:\n\n"+
					"  failed_queue = { name = %q, declare = false }\n\n"+
					"Change it once the other has released the queue.", q.name, failedQueue, by, failedQueue)
		}
	}
}

const (
	workQueueOfAnother = "Queue %q is a work queue of the pipeline %q, and a queue can belong to one pipeline only. " +
		"To move it without losing messages, leave it in %q for now, write take_over_from = %q here and apply. " +
		"Then remove the queue from %q and apply again. The guide \"Changing, moving, importing, destroying\" has the steps."

	moveOfOthers = "Queue %q is being moved from the pipeline %q to %q, and one move must end before the next one begins. " +
		"Remove the queue from %q and apply. Remove take_over_from in %q and apply. Then write take_over_from = %q here."

	undefinedOwner = "The pipeline %q has queue %q, but the pipeline's definition is gone: " +
		"the binding from %q to %q with the argument retry-definition. Apply the configuration of this pipeline, which restores the binding. " +
		"If no configuration has the pipeline, delete what is left of it: policies retry/%s/... and the binding from %q to the queue."

	notTakenOverYet = "Queue %q is still a work queue of the pipeline %q. Without take_over_from, it would be undefined which of the two " +
		"gets its rejected messages. To complete the move, first remove the queue from %q, in a separate apply. " +
		"To cancel the move, remove the queue here."
)
