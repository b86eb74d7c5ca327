package audit

import (
	"maps"
	"slices"
	"strings"

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

// topicMatches reports whether the binding key of a topic exchange accepts a routing key: "*" is one word,
// "#" any number of words.
func topicMatches(pattern, routingKey string) bool {
	return wordsMatch(words(pattern), words(routingKey))
}

// words splits a key. The empty key has none, as in the broker.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ".")
}

func wordsMatch(pattern, text []string) bool {
	// reached[i] means that the pattern so far accepts the first i words. One pass per word of the
	// pattern: trying all ways would take exponential time for patterns with many "#".
	reached := make([]bool, len(text)+1)
	reached[0] = true
	for _, word := range pattern {
		next := make([]bool, len(text)+1)
		for i := range next {
			switch {
			case word == "#":
				next[i] = reached[i] || i > 0 && next[i-1]
			case i > 0 && (word == "*" || word == text[i-1]):
				next[i] = reached[i-1]
			}
		}
		reached = next
	}
	return reached[len(text)]
}

// findArrivalKeys collects the keys with which messages arrive in each queue: those of bindings that
// name one, and those that dead letters keep. A queue of which nothing is known gets its
// messages through the default exchange, with its name as the key.
func (g graph) findArrivalKeys() {
	for _, exchange := range slices.Sorted(maps.Keys(g.bindings)) {
		for _, k := range g.publishedKeys(exchange) {
			g.addArrivalKeys(g.route(exchange, k), k)
		}
	}
	for _, queue := range g.classicAndQuorum() {
		if len(g.arrivalKeys[queue]) == 0 {
			g.addArrivalKey(queue, known(queue))
		}
	}
}

// publishedKeys lists the keys with which messages are published to an exchange, as far as its bindings
// show them.
func (g graph) publishedKeys(exchange string) []key {
	var keys []key
	for _, b := range g.bindings[exchange] {
		keys = append(keys, g.keyThrough(b))
	}
	topology.Sort(keys, func(a, b *key) int { return strings.Compare(a.text, b.text) })
	return slices.Compact(keys)
}

// keyThrough is the key that a message has which the binding has accepted, if there is only one.
func (g graph) keyThrough(b topology.Binding) key {
	kind := g.vhost.Exchanges[b.Source].Type
	if kind == "direct" || kind == "topic" && !strings.ContainsAny(b.RoutingKey, "*#") {
		return known(b.RoutingKey)
	}
	return unknown
}

// addArrivalKeys notes a key of the queues that get messages with it.
func (g graph) addArrivalKeys(to routes, k key) {
	for queue := range to.sure {
		g.addArrivalKey(queue, k)
	}
	if !k.known {
		for queue := range to.possible {
			g.addArrivalKey(queue, k)
		}
	}
}

// addArrivalKey notes a key, and follows the message through its deaths.
func (g graph) addArrivalKey(queue string, k key) {
	if g.arrivalKeys[queue][k] {
		return
	}
	if g.arrivalKeys[queue] == nil {
		g.arrivalKeys[queue] = map[key]bool{}
	}
	g.arrivalKeys[queue][k] = true
	g.addArrivalKeys(g.deadLetter(queue, k))
}

// sortedArrivalKeys lists the keys with which messages arrive in a queue.
func (g graph) sortedArrivalKeys(queue string) []key {
	keys := slices.Collect(maps.Keys(g.arrivalKeys[queue]))
	topology.Sort(keys, func(a, b *key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
