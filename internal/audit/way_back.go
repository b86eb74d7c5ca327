package audit

import (
	"slices"
	"strings"
)

// diesByItself reports whether messages leave the queue without anybody rejecting them.
func (g graph) diesByItself(queue string) bool {
	s := g.settings[queue]
	_, expires := s.Number("message-ttl")
	overflow, _ := s.Text("overflow")
	return expires || s.Limited() && overflow != "reject-publish"
}

// place is a queue and the key with which a message came there.
type place struct {
	queue string
	key   key
}

// wayBack finds the shortest way on which a message that died in the queue certainly comes back
// to it without anybody touching it in between. The queue itself is its first and its last place.
func (g graph) wayBack(queue string) []place {
	for _, arrived := range g.sortedArrivalKeys(queue) {
		if way := g.wayBackFrom(place{queue, arrived}); way != nil {
			return way
		}
	}
	return nil
}

func (g graph) wayBackFrom(start place) []place {
	from := map[place]place{}
	seen := map[place]bool{start: true}
	for queue := []place{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		to, next := g.deadLetter(at.queue, at.key)
		for _, name := range to.names() {
			there := place{name, next}
			if name == start.queue {
				from[there] = at
				return wayTo(from, start, there)
			}
			if !seen[there] && g.diesByItself(name) {
				seen[there], from[there] = true, at
				queue = append(queue, there)
			}
		}
	}
	return nil
}

// wayTo returns the way from start to end, which may be the same place.
func wayTo(from map[place]place, start, end place) []place {
	way := []place{end}
	for at := from[end]; at != start; at = from[at] {
		way = append(way, at)
	}
	way = append(way, start)
	slices.Reverse(way)
	return way
}

// arrows writes a way as "a -> b -> a".
func arrows(way []place) string {
	names := make([]string, len(way))
	for i, at := range way {
		names[i] = at.queue
	}
	return strings.Join(names, " -> ")
}

// queuesOn lists the queues on a way that ends where it began, each once.
func queuesOn(way []place) []string {
	var names []string
	for _, at := range way[:len(way)-1] {
		names = append(names, at.queue)
	}
	return names
}
