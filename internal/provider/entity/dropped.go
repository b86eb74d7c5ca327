package entity

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// DroppedDeadLetters lists those of the queues of which nobody gets what is rejected after a change that detaches them.
// What others are known to detach from them in this run does not count for them.
func DroppedDeadLetters(run *session.Session, c apply.Change, queues []string) []string {
	var dropped []string
	for _, queue := range queues {
		going := run.Goes(c.Vhost, queue, slices.Collect(maps.Keys(c.Live.Policies))...)
		vhost := c.All
		vhost.Policies = maps.Clone(vhost.Policies)
		maps.DeleteFunc(vhost.Policies, func(name string, _ topology.Policy) bool {
			_, own := c.Live.Policies[name]
			return !own && slices.Contains(going, name)
		})
		dropped = append(dropped, topology.DroppedDeadLetters([]string{queue}, c.Live, c.Wanted, vhost)...)
	}
	return dropped
}
