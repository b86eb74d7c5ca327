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

// routes are where a message goes.
type routes struct {
	// sure are the queues that get it, possible those that may.
	sure, possible map[string]bool
	// nowhere tells that no queue can get it, whatever it looks like.
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

// follow notes the queues that an exchange leads to, and tells whether there may be any. Sure tells
// whether the message comes to this exchange at all.
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

// followDefault follows a message through the default exchange, which knows every queue by its name.
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

// answer is how sure something is.
type answer int

const (
	no answer = iota
	maybe
	yes
)

// matches tells whether a binding takes a message with the key. Where headers, hashes, chance or a
// plugin decide, only the message itself could tell.
func matches(exchange topology.Exchange, b topology.Binding, k key) answer {
	switch exchange.Type {
	case "fanout":
		return yes
	case "direct":
		return whether(k, func(text string) bool { return text == b.RoutingKey })
	case "topic":
		if b.RoutingKey == "#" {
			return yes
		}
		return whether(k, func(text string) bool { return topicMatches(b.RoutingKey, text) })
	}
	return maybe
}

func whether(k key, matches func(string) bool) answer {
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

// names lists the queues that surely get the message.
func (r routes) names() []string { return slices.Sorted(maps.Keys(r.sure)) }
