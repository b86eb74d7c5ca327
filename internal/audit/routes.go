package audit

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// key is a routing key, known or not.
type key struct {
	text  string
	known bool
}

// unknown stands for any key.
var unknown key

func known(text string) key { return key{text, true} }

// routes are the queues to which a message goes.
type routes struct {
	// sure has the queues that get it, possible those that may.
	sure, possible map[string]bool
	// nowhere means that no queue can get it, whatever it looks like.
	nowhere bool
}

// route follows a message through an exchange.
func (g graph) route(exchange string, k key) routes {
	r := routes{sure: map[string]bool{}, possible: map[string]bool{}}
	r.nowhere = !g.follow(exchange, k, true, r, map[string]bool{})
	for queue := range r.sure {
		delete(r.possible, queue)
	}
	return r
}

// follow notes the queues that an exchange leads to, and reports whether there may be any. Sure means
// that the message certainly comes to this exchange.
func (g graph) follow(exchange string, k key, sure bool, into routes, visited map[string]bool) bool {
	if exchange == "" {
		return g.followDefault(k, sure, into)
	}
	live, exists := g.vhost.Exchanges[exchange]
	if !exists || visited[exchange] {
		return false
	}
	visited = maps.Clone(visited)
	visited[exchange] = true
	strongest, leads := no, false
	for _, b := range g.bindings[exchange] {
		match := matches(live, b, k)
		strongest = max(strongest, match)
		if match == no {
			continue
		}
		if b.ToExchange {
			leads = g.follow(b.Destination, k, sure && match == yes, into, visited) || leads
			continue
		}
		leads = into.add(b.Destination, sure && match == yes) || leads
	}
	if alternate, has := g.alternates[exchange]; has && strongest != yes {
		leads = g.follow(alternate, k, sure && strongest == no, into, visited) || leads
	}
	return leads
}

// followDefault follows a message through the default exchange, which routes to queues by name.
func (g graph) followDefault(k key, sure bool, into routes) bool {
	if !k.known {
		return true
	}
	_, exists := g.settings[k.text]
	return exists && into.add(k.text, sure)
}

func (r routes) add(queue string, sure bool) bool {
	if sure {
		r.sure[queue] = true
	} else {
		r.possible[queue] = true
	}
	return true
}

// answer is what is known of a yes-or-no question.
type answer int

const (
	no answer = iota
	maybe
	yes
)

// matches reports whether a binding accepts a message with the key: maybe, where headers, hashes, chance
// or a plugin decide.
func matches(exchange topology.Exchange, b topology.Binding, k key) answer {
	switch exchange.Type {
	case "fanout":
		return yes
	case "direct":
		return matchesKey(k, func(text string) bool { return text == b.RoutingKey })
	case "topic":
		if b.RoutingKey == "#" {
			return yes
		}
		return matchesKey(k, func(text string) bool { return topicMatches(b.RoutingKey, text) })
	}
	return maybe
}

func matchesKey(k key, matches func(string) bool) answer {
	switch {
	case !k.known:
		return maybe
	case matches(k.text):
		return yes
	}
	return no
}

func (k key) String() string {
	if !k.known {
		return "any key"
	}
	return k.text
}

// names lists the queues that certainly get the message.
func (r routes) names() []string { return slices.Sorted(maps.Keys(r.sure)) }
