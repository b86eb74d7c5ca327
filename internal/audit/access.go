package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// User is a user without the tag administrator, with its permissions in a vhost.
type User struct{ Name, Write, Read string }

// allows reports whether a permission matches the name. An empty pattern matches none, and neither does one that cannot
// be evaluated here.
func allows(pattern, name string) bool {
	matches, err := topology.MatchesPattern(pattern, name)
	return pattern != "" && err == nil && matches
}

// answeredDeliveries finds consumers behind a delayed exchange that can publish to the exchange of their deliveries.
func answeredDeliveries(g graph, d delayedExchange, report func(Finding)) {
	behind := slices.Collect(maps.Keys(g.route(d.DeliverExchange(), unknown).queues))
	var users []string
	for _, u := range g.known.Users {
		reads := func(queue string) bool { return !d.OwnsQueue(queue) && allows(u.Read, queue) }
		if slices.ContainsFunc(behind, reads) && allows(u.Write, d.DeliverExchange()) {
			users = append(users, fmt.Sprintf("%q", u.Name))
		}
	}
	if len(users) > 0 {
		slices.Sort(users)
		report(d.finding(fmt.Sprintf(deliveryAnswered, listed(users), d.DeliverExchange()),
			fmt.Sprintf(deliveryAnsweredRemedy, d.DeliverExchange(), d.Exchange())))
	}
}
