package pipeline

import (
	"maps"
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
	for name, w := range p.WorkQueues {
		if _, exists := planned.Queues[name]; !exists {
			planned.Queues[name] = topology.Queue{Type: w.Type}
		}
	}
	return planned
}

// withoutOtherPipelines leaves out the exchanges, queues, bindings and policies of other pipelines.
func withoutOtherPipelines(v topology.Vhost, name string) topology.Vhost {
	others := map[string]bool{}
	for _, other := range Pipelines(v.Topology) {
		others[other] = other != name
	}
	rest := v
	rest.Topology = topology.Topology{Exchanges: maps.Clone(v.Exchanges), Queues: maps.Clone(v.Queues), Policies: maps.Clone(v.Policies)}
	maps.DeleteFunc(rest.Exchanges, func(exchange string, _ topology.Exchange) bool { return others[beforeLastDot(exchange)] })
	maps.DeleteFunc(rest.Queues, func(queue string, _ topology.Queue) bool { return others[ownerByName(queue)] })
	maps.DeleteFunc(rest.Policies, func(policy string, p topology.Policy) bool { return others[ofPipeline(policy, p)] })
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
