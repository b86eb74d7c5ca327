package topology

import "slices"

// Displaced lists the quorum work queues that hold dead letters at-least-once for somebody else, whose
// policy a new attachment replaces by one that does not: what they hold would be deleted.
func Displaced(next Pipeline, prior *Pipeline, vhost Vhost) []string {
	lookup := NewLookup(vhost)
	var queues []string
	for _, name := range next.attachedByPolicy() {
		attachedBefore := false
		if prior != nil {
			before, had := prior.WorkQueues[name]
			attachedBefore = had && before.byPolicy()
		}
		_, exists := vhost.Queues[name]
		if exists && !attachedBefore && next.WorkQueues[name].Strategy() != AtLeastOnce && lookup.Queue(name).AtLeastOnce() {
			queues = append(queues, name)
		}
	}
	return queues
}

// DisplacedByAttachment is Displaced for an attachment.
func DisplacedByAttachment(next Attachment, prior *Attachment, vhost Vhost) []string {
	var before *Pipeline
	if prior != nil {
		was := prior.pipeline()
		before = &was
	}
	return Displaced(next.pipeline(), before, vhost)
}

// Unprotected lists the quorum work queues whose undelivered dead letters the change from prior to
// next would delete: a queue that holds some loses them with its policy, or when the policy's
// strategy, overflow or dead-letter exchange is taken away. Those of a queue that is attached by
// arguments have nowhere to go once the pipeline itself is gone, which an empty next stands for.
func Unprotected(prior, next Pipeline) []string {
	var queues []string
	for name, before := range prior.WorkQueues {
		if before.Strategy() != AtLeastOnce {
			continue
		}
		after, stays := next.WorkQueues[name]
		kept := stays && after.Type == before.Type && after.Strategy() == AtLeastOnce && after.byPolicy()
		if !before.byPolicy() {
			kept = next.Name != ""
		}
		if !kept {
			queues = append(queues, name)
		}
	}
	slices.Sort(queues)
	return queues
}
