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
	r := routes{sure: map[string]bool{}, possible: map[string]bool{}, nowhere: true}
	g.follow(stop{exchange, true}, k, &r, map[stop]bool{})
	for queue := range r.sure {
		delete(r.possible, queue)
	}
	return r
}

// stop is an exchange on the way of a message. Sure means that it certainly comes there.
type stop struct {
	exchange string
	sure     bool
}

// follow notes the queues that an exchange leads to.
func (g graph) follow(at stop, k key, into *routes, visited map[stop]bool) {
	if at.exchange == "" {
		g.followDefault(k, at.sure, into)
		return
	}
	live, exists := g.vhost.Exchanges[at.exchange]
	if !exists || visited[at] {
		return
	}
	visited[at] = true
	strongest := no
	for _, b := range g.bindings[at.exchange] {
		match := matches(live, b, k)
		strongest = max(strongest, match)
		sure := at.sure && match == yes
		switch {
		case match == no:
		case b.ToExchange:
			g.follow(stop{b.Destination, sure}, k, into, visited)
		default:
			into.add(b.Destination, sure)
		}
	}
	if alternate, has := g.alternates[at.exchange]; has && strongest != yes {
		g.follow(stop{alternate, at.sure && strongest == no}, k, into, visited)
	}
}

// followDefault follows a message through the default exchange, which routes to queues by name.
func (g graph) followDefault(k key, sure bool, into *routes) {
	if !k.known {
		into.nowhere = false
	} else if _, exists := g.settings[k.text]; exists {
		into.add(k.text, sure)
	}
}

func (r *routes) add(queue string, sure bool) {
	r.nowhere = false
	if sure {
		r.sure[queue] = true
	} else {
		r.possible[queue] = true
	}
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
