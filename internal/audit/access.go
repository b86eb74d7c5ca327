package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// User is a user without the tag administrator, with its permissions in a vhost.
type User struct{ Name, Write, Read string }

// canRead and canWrite report whether a permission matches the name. If a pattern cannot be evaluated here, they do not.
func (u User) canRead(name string) bool  { return allows(u.Read, name) }
func (u User) canWrite(name string) bool { return allows(u.Write, name) }

// allows takes an empty pattern for none, as brokers do.
func allows(pattern, name string) bool {
	matches, err := topology.MatchesPattern(pattern, name)
	return pattern != "" && err == nil && matches
}

// answeredDeliveries finds consumers behind a delayed exchange that can publish to the exchange of their deliveries.
func answeredDeliveries(g graph, d delayedExchange, report func(message, remedy string)) {
	behind := g.route(d.DeliverExchange(), unknown)
	var users []string
	for _, u := range g.known.Users {
		consumes := slices.ContainsFunc(slices.Collect(maps.Keys(behind.queues)), func(queue string) bool {
			return !d.OwnsQueue(queue) && u.canRead(queue)
		})
		if consumes && u.canWrite(d.DeliverExchange()) {
			users = append(users, fmt.Sprintf("%q", u.Name))
		}
	}
	if len(users) > 0 {
		slices.Sort(users)
		report(fmt.Sprintf(deliveryAnswered, listed(users), d.DeliverExchange()),
			fmt.Sprintf(deliveryAnsweredRemedy, d.DeliverExchange(), d.Exchange()))
	}
}
