package topology

import (
	"maps"
	"strings"
)

// Planned is the vhost as it will be once the pipeline is applied, without what belongs to other
// pipelines alone. Prior is the pipeline as it was, nil if it is new.
func Planned(p Pipeline, prior *Pipeline, vhost Vhost) Vhost {
	planned := vhost.withoutOtherPipelines(p.Name)
	replaced := Owned(p, planned.Topology)
	if prior != nil {
		replaced = Merge(replaced, Owned(*prior, planned.Topology))
	}
	planned.Topology = Merge(planned.without(replaced), Expand(p))
	for name, w := range p.WorkQueues {
		if _, exists := planned.Queues[name]; !exists {
			planned.Queues[name] = Queue{Type: w.Type}
		}
	}
	return planned
}

func (t Topology) without(other Topology) Topology {
	rest := Topology{Exchanges: maps.Clone(t.Exchanges), Queues: maps.Clone(t.Queues), Policies: maps.Clone(t.Policies)}
	maps.DeleteFunc(rest.Exchanges, func(name string, _ Exchange) bool { _, drop := other.Exchanges[name]; return drop })
	maps.DeleteFunc(rest.Queues, func(name string, _ Queue) bool { _, drop := other.Queues[name]; return drop })
	maps.DeleteFunc(rest.Policies, func(name string, _ Policy) bool { _, drop := other.Policies[name]; return drop })
	rest.Bindings = bindingsWithout(t.Bindings, other.Bindings)
	return rest
}

// withoutOtherPipelines leaves out the exchanges, queues, bindings and policies of other pipelines.
func (v Vhost) withoutOtherPipelines(name string) Vhost {
	others := map[string]bool{}
	for _, other := range Pipelines(v.Topology) {
		others[other] = other != name
	}
	rest := v
	rest.Topology = Topology{Exchanges: maps.Clone(v.Exchanges), Queues: maps.Clone(v.Queues), Policies: maps.Clone(v.Policies)}
	maps.DeleteFunc(rest.Exchanges, func(exchange string, _ Exchange) bool { return others[beforeLastDot(exchange)] })
	maps.DeleteFunc(rest.Queues, func(queue string, _ Queue) bool { return others[ownerByName(queue)] })
	maps.DeleteFunc(rest.Policies, func(policy string, p Policy) bool { return others[pipelineOf(policy, p)] })
	for _, b := range v.Bindings {
		if !others[beforeLastDot(b.Source)] && (b.ToExchange || !others[ownerByName(b.Destination)]) {
			rest.Bindings = append(rest.Bindings, b)
		}
	}
	return rest
}

// beforeLastDot is the pipeline that an exchange would belong to.
func beforeLastDot(exchange string) string {
	i := strings.LastIndex(exchange, ".")
	if i < 0 || !Names(exchange[:i]).ownsExchange(exchange) {
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
