package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// AfterApply is the vhost as it will be once the pipeline is applied, without what belongs to other
// pipelines alone. Prior is the pipeline as it was, nil if it is new.
func AfterApply(p Pipeline, prior *Pipeline, vhost topology.Vhost) topology.Vhost {
	planned := withoutOtherPipelines(vhost, p.Name)
	replaced := Owned(p, planned.Topology)
	if prior != nil {
		replaced = topology.Merge(replaced, Owned(*prior, planned.Topology))
	}
	planned.Topology = topology.Merge(planned.Without(replaced), Expand(p))
	if prior != nil {
		leaveOut(leftToOthers(*prior, p, vhost), &planned.Topology)
	}
	for name, w := range p.WorkQueues {
		if _, exists := planned.Queues[name]; !exists {
			planned.Queues[name] = topology.Queue{Type: w.Type}
		}
		if _, declared := planned.Queues[w.FailedQueue]; !declared && w.FailedQueue != "" {
			planned.Queues[w.FailedQueue] = foreignFailedQueue(vhost.Queues[w.FailedQueue])
		}
	}
	return planned
}

// leftToOthers lists the work queues that the pipeline had before, with this change or an earlier one, and that another one
// has now.
func leftToOthers(prior, next Pipeline, vhost topology.Vhost) []string {
	var gone []string
	others := ForeignTo(vhost, []string{prior.Name, next.Name})
	for _, name := range slices.AppendSeq(slices.Clone(next.Detached), maps.Keys(prior.WorkQueues)) {
		_, stays := next.WorkQueues[name]
		if !stays && slices.ContainsFunc(others.OwnersOf(name), func(o Owner) bool { return o.AsWorkQueue }) {
			gone = append(gone, name)
		}
	}
	return gone
}

// leaveOut takes queues, with their bindings, out of a vhost's maps, which nobody else uses.
func leaveOut(queues []string, from *topology.Topology) {
	for _, name := range queues {
		delete(from.Queues, name)
	}
	from.Bindings = slices.DeleteFunc(slices.Clone(from.Bindings), func(b topology.Binding) bool {
		return !b.ToExchange && slices.Contains(queues, b.Destination)
	})
}

// foreignFailedQueue is a failed queue that the pipeline does not declare, or not any more: as it is, or one about which nothing
// is known yet.
func foreignFailedQueue(live topology.Queue) topology.Queue {
	if live.Type == "" {
		return topology.Queue{Type: topology.Classic} // has no default limit
	}
	return live
}

// withoutOtherPipelines leaves out the exchanges, queues, bindings and policies of other pipelines.
func withoutOtherPipelines(v topology.Vhost, name string) topology.Vhost {
	others := map[string]bool{}
	for _, other := range Pipelines(v.Topology) {
		others[other] = other != name
	}
	rest := v
	rest.Topology = topology.Topology{Exchanges: maps.Clone(v.Exchanges), Queues: maps.Clone(v.Queues), Policies: maps.Clone(v.Policies)}
	maps.DeleteFunc(rest.Exchanges, func(exchange string, _ topology.Exchange) bool { return others[exchangeOwner(exchange)] })
	maps.DeleteFunc(rest.Queues, func(queue string, _ topology.Queue) bool { return others[ownerByName(queue)] })
	maps.DeleteFunc(rest.Policies, func(policy string, p topology.Policy) bool { return others[ofPipeline(policy, p)] })
	for _, b := range v.Bindings {
		if !others[exchangeOwner(b.Source)] && (b.ToExchange || !others[ownerByName(b.Destination)]) {
			rest.Bindings = append(rest.Bindings, b)
		}
	}
	return rest
}

// exchangeOwner is the pipeline that an exchange would belong to, "" if none.
func exchangeOwner(exchange string) string {
	if name, routes := strings.CutSuffix(exchange, Names("").FailedRouteExchange()); routes {
		return name
	}
	i := strings.LastIndex(exchange, ".")
	if i < 0 || !Names(exchange[:i]).OwnsExchange(exchange) {
		return ""
	}
	return exchange[:i]
}

// ownerByName is the pipeline that a queue would be one of the own queues of, "" if none.
func ownerByName(queue string) string {
	for _, part := range []string{Names("").Inbox(), Names("").FailedQueue(), Names("").retryQueuePrefix()} {
		if i := strings.LastIndex(queue, part); i > 0 && Names(queue[:i]).OwnsQueue(queue) {
			return queue[:i]
		}
	}
	return ""
}
