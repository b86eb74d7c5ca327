package audit

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"

// trie has the bindings of a direct or topic exchange by the words of their binding keys.
type trie struct {
	next     map[string]*trie
	bindings []topology.Binding
}

func newTrie(kind string, bindings []topology.Binding) *trie {
	root := &trie{}
	for _, b := range bindings {
		at := root
		for _, word := range keysThrough(kind, b).patterns()[0] {
			if at.next[word] == nil {
				if at.next == nil {
					at.next = map[string]*trie{}
				}
				at.next[word] = &trie{}
			}
			at = at.next[word]
		}
		at.bindings = append(at.bindings, b)
	}
	return root
}

// matching lists the bindings that can match a key.
func (g graph) matching(exchange string, k key) []topology.Binding {
	if t := g.tries[exchange]; t != nil && k != unknown {
		return t.search(k.patterns()[0], map[position]bool{})
	}
	return g.bindings[exchange]
}

// position is a node, and how many words of a pattern are left there.
type position struct {
	at   *trie
	left int
}

// search finds the bindings that match a key that the pattern matches, too.
func (t *trie) search(pattern []string, seen map[position]bool) (found []topology.Binding) {
	if t == nil || seen[position{t, len(pattern)}] {
		return nil
	}
	seen[position{t, len(pattern)}] = true
	for left := len(pattern); left >= 0; left-- { // a "#" here matches any number of the pattern's words
		found = append(found, t.next[anyWords].search(pattern[len(pattern)-left:], seen)...)
	}
	if len(pattern) == 0 {
		return append(found, t.bindings...)
	}
	word, rest := pattern[0], pattern[1:]
	if !wild(word) {
		return append(append(found, t.next[word].search(rest, seen)...), t.next[anyWord].search(rest, seen)...)
	}
	if word == anyWords {
		found, rest = append(found, t.search(rest, seen)...), pattern
	}
	for _, next := range t.next {
		found = append(found, next.search(rest, seen)...)
	}
	return found
}
