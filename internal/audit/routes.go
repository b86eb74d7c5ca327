package audit

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// key is a routing key, which can be unknown.
type key struct {
	text  string
	known bool
}

// unknown stands for any routing key.
var unknown key

func known(text string) key { return key{text, true} }

// routes are the queues that a message goes to.
type routes struct {
	// sure are the queues that certainly get the message. possible are queues that can get it.
	sure, possible map[string]bool
	// nowhere means that no queue can get the message with any headers.
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

// stop is an exchange on a message's route. sure means that the message certainly arrives there.
type stop struct {
	exchange string
	sure     bool
}

// follow adds the queues behind an exchange.
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

// followDefault follows a message through the default exchange, which routes by queue name.
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

// topicMatches reports whether a topic exchange's binding key accepts a routing key: "*" matches one word, "#" any
// number of words.
func topicMatches(pattern, routingKey string) bool {
	return wordsMatch(words(pattern), words(routingKey))
}

// words splits a key. As in the broker, the empty key has no words.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ".")
}

func wordsMatch(pattern, text []string) bool {
	// reached[i] means that the pattern so far accepts the first i words. It takes one pass for each word, because
	// recursion would take exponential time for patterns with many "#".
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

// findArrivalKeys finds the routing keys that messages arrive with in each queue. They come from bindings with a
// definite key, and from dead letters that keep their key. If it finds no key, it assumes messages through the default
// exchange, with the queue's name as the key.
func (g graph) findArrivalKeys() {
	for exchange, bindings := range g.bindings {
		published := map[key]bool{}
		for _, b := range bindings {
			published[g.keyThrough(b)] = true
		}
		for k := range published {
			g.addArrivalKeys(g.route(exchange, k), k)
		}
	}
	for _, queue := range g.classicAndQuorum() {
		if len(g.arrivalKeys[queue]) == 0 {
			g.addArrivalKey(queue, known(queue))
		}
	}
}

// keyThrough returns the only key that a binding accepts, or unknown.
func (g graph) keyThrough(b topology.Binding) key {
	kind := g.vhost.Exchanges[b.Source].Type
	if kind == "direct" || kind == "topic" && !strings.ContainsAny(b.RoutingKey, "*#") {
		return known(b.RoutingKey)
	}
	return unknown
}

// addArrivalKeys adds a key to the queues that get messages with it.
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

// addArrivalKey adds a key, and follows the message when it dies.
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

func (g graph) sortedArrivalKeys(queue string) []key {
	keys := slices.Collect(maps.Keys(g.arrivalKeys[queue]))
	topology.Sort(keys, func(a, b *key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
