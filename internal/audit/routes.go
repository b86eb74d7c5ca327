package audit

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// routes are the queues that a message goes to.
type routes struct {
	// queues are those that can get the message. The value says whether one certainly gets it.
	queues map[string]bool
	// sure are those that certainly get it, in order. Only remembered routes have them.
	sure []string
	// nowhere means that no queue can get the message with any headers.
	nowhere bool
	// arrivals has the keys that messages come to each queue with. Some can be there twice.
	arrivals []place
	// passed are the exchanges on the way.
	passed map[stop]bool
}

// route follows a message through an exchange, and remembers the route.
func (g graph) route(exchange string, k key) routes {
	at := stop{exchange, k, true}
	r, followed := g.routes[at]
	if !followed {
		r = g.routeOnce(at)
		r.sure = where(slices.Sorted(maps.Keys(r.queues)), func(queue string) bool { return r.queues[queue] })
		g.routes[at] = r
	}
	return r
}

// routeOnce serves routes that no rule asks for again. A vhost can have a key for each of 20,000 queues.
func (g graph) routeOnce(at stop) routes {
	r := routes{queues: map[string]bool{}, nowhere: true, passed: map[stop]bool{}}
	g.follow(at, &r)
	return r
}

// stop is an exchange on a message's route. sure means that the message certainly arrives there.
type stop struct {
	exchange string
	key      key
	sure     bool
}

// follow adds the queues behind an exchange.
func (g graph) follow(at stop, into *routes) {
	live, exists := g.vhost.Exchanges[at.exchange]
	switch {
	case into.passed[at] || !exists && at.exchange != "":
		return
	case at.exchange == "" && (at.key == unknown || at.key == everything): // no single queue is meant
		into.nowhere = false
		return
	}
	into.passed[at] = true
	strongest := no
	for _, b := range g.matching(at.exchange, at.key) {
		match := matches(live, b, at.key)
		if match == no || !g.ends(b) {
			continue
		}
		strongest = max(strongest, match)
		next := stop{b.Destination, at.key.narrow(keysThrough(live.Type, b)), at.sure && match == yes}
		if b.ToExchange {
			g.follow(next, into)
		} else {
			into.add(next)
		}
	}
	if alternate, has := g.alternates[at.exchange]; has && strongest != yes {
		g.follow(stop{alternate, at.key.unmatched(at.exchange, strongest), at.sure && strongest == no}, into)
	}
}

// unmatched returns the keys that an exchange gives to its alternate exchange.
func (k key) unmatched(exchange string, strongest answer) key {
	switch {
	case strongest == no:
		return k
	case k.known || k == unknown || k.past != "":
		return unknown
	}
	k.past = exchange
	return k
}

// ends reports whether a binding's destination exists.
func (g graph) ends(b topology.Binding) bool {
	if b.ToExchange {
		return g.exists(b.Destination)
	}
	_, exists := g.settings[b.Destination]
	return exists
}

func (r *routes) add(at stop) {
	r.nowhere = false
	r.arrivals = append(r.arrivals, place{at.exchange, at.key})
	r.queues[at.exchange] = r.queues[at.exchange] || at.sure
}

// answer is the answer to a yes-or-no question.
type answer int

const (
	no answer = iota
	maybe
	yes
)

// matches reports whether a binding accepts a message with the key. If headers, hashes, chance or a plugin decide, the
// answer is maybe.
func matches(exchange topology.Exchange, b topology.Binding, k key) answer {
	if exchange.Type == "headers" {
		match, _ := matchesHeaders(b)
		return match
	}
	return k.compare(keysThrough(exchange.Type, b))
}

// keysThrough returns the keys that a binding of an exchange of this type accepts.
func keysThrough(kind string, b topology.Binding) key {
	switch {
	case kind == "direct" || b.Source == "":
		return known(b.RoutingKey)
	case kind == "topic":
		return bindingKeys(b.RoutingKey)
	case kind == "fanout" || kind == "headers":
		return everything
	}
	return unknown
}
