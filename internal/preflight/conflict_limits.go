package preflight

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// bounded reports whether a definition limits the length of a queue.
func bounded(definition topology.Arguments) bool {
	return definition["max-length"] != nil || definition["max-length-bytes"] != nil
}

// settings returns the settings of the attached work queue. If it is attached by policy, the policy has this content.
func (q liveWorkQueue) settings(content topology.Arguments) topology.Settings {
	s := topology.Settings{Queue: q.live, Policies: q.policies, Operator: q.operator}
	if q.ByPolicy() {
		s.Policies = []topology.NamedPolicy{{Policy: topology.Policy{Definition: content}}}
	}
	return s
}

// checkLimits finds length limits that harm the work queue's publishers or other work queues when the queue is full.
func (q liveWorkQueue) checkLimits(f *Findings) {
	settings := q.settings(q.pipeline.PolicyContent(q.name))
	if !settings.Has("max-length") && !settings.Has("max-length-bytes") {
		return
	}
	// The value of overflow that at-least-once dead-lettering needs does not count, nor does an operator's.
	own := q.settings(q.pipeline.ExtraKeys(q.WorkQueue))
	own.Operator = nil
	overflow, _ := own.Text("overflow")
	rejects := overflow == "reject-publish"
	// If messages are delayed in their work queue, they are never published to it again.
	comesBack := !q.pipeline.Facts().InQueue
	switch {
	case !comesBack && rejects:
	case q.Type == topology.Classic && rejects:
		f.refuse(q.at(), "Retried messages would be lost at a full work queue",
			"Queue %q has a length limit and overflow = reject-publish. "+
				"Messages that come back while it is full are lost, or wait and delay messages of other queues. "+
				"Have displaced messages dead-lettered instead:\n\n  %s\n\n"+
				"If a classic queue has an x-overflow argument, that takes precedence over the policy. "+
				"Then declare the queue without the argument, or leave the queue out.",
			q.name, q.withOverflow("reject-publish-dlx"))
	case q.Type == topology.Quorum && rejects && q.alone():
		f.warn(q.at(), "A full work queue stops its retries",
			"Queue %q has a length limit and overflow = reject-publish. "+
				"While it is full, waiting messages cannot come back. With room again, they take up to 6 minutes. Raise the limit.", q.name)
	case q.Type == topology.Quorum && rejects:
		f.refuse(q.at(), "A full work queue would stop all retries",
			"Queue %q has a length limit and overflow = reject-publish. "+
				"While it is full, waiting messages cannot come back to any of the pipeline's work queues. "+
				"Give the queue a pipeline of its own, or let it drop its oldest messages, "+
				"which then arrive in the failed queue as \"maxlen\":\n\n  %s", q.name, q.withOverflow("drop-head"))
	case q.Strategy() == topology.AtLeastOnce:
		f.refuse(q.at(), "Length limit on a work queue with at-least-once dead-lettering",
			"Queue %q has a length limit and drops its oldest messages. At-least-once dead-lettering needs "+
				"overflow = reject-publish, which would refuse its publishers' newest messages instead. Dead-letter at most once. "+
				"Displaced messages then arrive in the failed queue as \"maxlen\":\n\n  %s",
			q.name, q.withStrategy(topology.AtMostOnce))
	}
}

// checkExpires finds settings that delete an unused queue with its messages.
func (q liveWorkQueue) checkExpires(f *Findings) {
	if q.live.Arguments["x-expires"] != nil && !q.Declare { // see checkArguments
		f.refuse(q.at(), "Work queue that expires",
			"Queue %q has x-expires: RabbitMQ deletes it with its messages after that time without use. "+
				"Declare it without x-expires, or leave it out.", q.name)
	}
	byPolicy := func(kind string, policies []topology.NamedPolicy) {
		for _, policy := range strongest(policies) {
			if policy.Definition["expires"] != nil {
				f.refuse(q.at(), "Work queue that expires",
					"The %s %q sets expires for queue %q: RabbitMQ deletes the queue with its messages after that time without use. "+
						"Remove expires from that policy, or change its pattern so that the queue does not match.", kind, policy.Name, q.name)
			}
		}
	}
	byPolicy("operator policy", q.operator)
	if !q.ByPolicy() {
		byPolicy("policy", q.policies)
	}
}

// alone reports whether the pipeline has only this work queue, so that it cannot hold up other retries.
func (q liveWorkQueue) alone() bool {
	other := func(b topology.Binding) bool {
		return b.Source == q.pipeline.Names().ReturnExchange() && b.Destination != q.name &&
			strings.HasPrefix(b.RoutingKey, pipeline.ReturnKeyPrefix)
	}
	return len(q.pipeline.WorkQueues) == 1 && !slices.ContainsFunc(q.vhost.Bindings, other)
}

func (q liveWorkQueue) withStrategy(strategy string) string {
	entry := q.WorkQueue
	entry.DeadLetterStrategy = strategy
	return q.write(entry)
}

func (q liveWorkQueue) withOverflow(overflow string) string {
	entry := q.WorkQueue
	entry.PolicyDefinition = topology.Arguments{}
	maps.Copy(entry.PolicyDefinition, q.PolicyDefinition)
	entry.PolicyDefinition["overflow"] = overflow
	if q.Type == topology.Quorum {
		entry.DeadLetterStrategy = topology.AtMostOnce
	}
	return q.write(entry)
}

// checkClientDeaths warns of x-death headers that a client wrote. Brokers before 4.0 take such a header for their own,
// find a cycle, and hold the message and all later ones.
func (q liveWorkQueue) checkClientDeaths(f *Findings) {
	if !q.vhost.Version.Before(4, 0) || q.Strategy() != topology.AtLeastOnce {
		return
	}
	settings := q.settings(q.pipeline.PolicyContent(q.name))
	for _, key := range []string{"message-ttl", "max-length", "max-length-bytes", "delivery-limit"} {
		if settings.Has(key) {
			f.warn(q.at(), "A copied x-death header can stop the work queue", "Queue %q has %s. "+
				"A client can copy a message with its x-death header from the pipeline's inbox, "+
				"for example by shovelling it out of the failed queue. "+
				"Before RabbitMQ 4.0, such a copy stays in the queue as a pending dead letter when it dies. "+
				"So does every dead letter after it. "+
				"Never shovel failed messages back, or dead-letter at most once, which loses only such messages:\n\n  %s",
				q.name, key, q.withStrategy(topology.AtMostOnce))
			return
		}
	}
}
