package audit

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// byHead has the bindings of a direct or topic exchange by the words before their first wildcard.
type byHead struct {
	bindings map[string][]topology.Binding
	heads    []string
}

func newByHead(kind string, bindings []topology.Binding) byHead {
	index := byHead{bindings: map[string][]topology.Binding{}}
	for _, b := range bindings {
		h := head(keysThrough(kind, b))
		index.bindings[h] = append(index.bindings[h], b)
	}
	index.heads = slices.Sorted(maps.Keys(index.bindings))
	return index
}

// head returns the words before the first wildcard of a pattern, each with a dot behind it.
func head(k key) string {
	var text strings.Builder
	for _, word := range k.patterns()[0] {
		if wild(word) {
			break
		}
		text.WriteString(word + ".")
	}
	return text.String()
}

// matching lists the bindings that can match, and few others.
func (g graph) matching(exchange string, k key) []topology.Binding {
	index, indexed := g.byHead[exchange]
	h := head(k)
	if !indexed || h == "" && !k.known {
		return g.bindings[exchange]
	}
	found := slices.Clone(index.bindings[""])
	for i := range h {
		if h[i] == '.' {
			found = append(found, index.bindings[h[:i+1]]...)
		}
	}
	first, _ := slices.BinarySearch(index.heads, h)
	for _, longer := range index.heads[first:] {
		if k.known || !strings.HasPrefix(longer, h) {
			break
		}
		if longer != h {
			found = append(found, index.bindings[longer]...)
		}
	}
	return found
}
