package adopt

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// retry is a retry by hand, whose place a pipeline of this name takes.
type retry struct {
	name string
	// work are the queues that consumers work on. Messages wait in waiting, and rest in parking.
	work, waiting, parking []string
	// delays are the TTLs of the waiting queues, shortest first.
	delays []time.Duration
	// circular says that a work queue dead-letters to a waiting queue.
	circular bool
}

// delay is a waiting queue without a TTL of its own, whose place a delayed exchange of this name takes.
type delay struct {
	name, waiting string
	work          []string
}

// handMade are the retries by hand of a vhost.
type handMade struct {
	retries []retry
	delays  []delay
	// successors are the names of new work queues, by the queue whose arguments make it dead-letter.
	successors map[string]string
}

// recognition finds retries by hand.
type recognition struct {
	handMade
	vhost    topology.Vhost
	settings map[string]topology.Settings
	// targets has the queues that can get a queue's dead letters, without itself.
	targets map[string][]string
	// consumed are the queues with a consumer. waits are the waiting queues. named are the names that are given.
	consumed, waits, named map[string]bool
	wants                  func(names ...string) bool
	left                   []string
}

// recognise finds the retries of a vhost, except those of pipelines, and names the queues that it does not understand. If two queues could
// both be the work queue, the one with a consumer is.
func recognise(w *writer, consumed map[string]bool) recognition {
	r := recognition{
		vhost: w.vhost, targets: audit.DeadLetterTargets(w.vhost), settings: map[string]topology.Settings{},
		consumed: consumed, waits: map[string]bool{}, named: map[string]bool{}, wants: w.wants,
	}
	r.successors = map[string]string{}
	for name := range w.vhost.Queues {
		r.settings[name] = w.lookup.Queue(name)
	}
	isOwned := func(name string) bool { _, is := w.owned.Queues[name]; return is }
	for _, queue := range slices.Sorted(maps.Keys(r.targets)) {
		if isOwned(queue) || slices.ContainsFunc(r.targets[queue], isOwned) {
			delete(r.targets, queue)
		} else if len(r.targets[queue]) == 0 {
			r.left = append(r.left, fmt.Sprintf("queue %q: its dead letters reach no queue", queue))
		}
		r.targets[queue] = slices.DeleteFunc(r.targets[queue], func(target string) bool { return target == queue })
	}
	for _, queue := range slices.Sorted(maps.Keys(r.targets)) {
		r.findRole(queue)
	}
	for name := range w.vhost.Exchanges { // a delayed exchange needs another name
		r.named[name] = true
	}
	for name := range w.vhost.Queues { // and so does a successor
		r.named[name] = true
	}
	for _, group := range r.groups() {
		switch unwanted := slices.DeleteFunc(slices.Clone(group), func(queue string) bool { return r.wants(queue) }); len(unwanted) {
		case 0:
			r.addGroup(group)
		case len(group):
		default:
			r.left = append(r.left, fmt.Sprintf("retries of %s: --only leaves out %s", list(group), list(unwanted)))
		}
	}
	return r
}

// findRole decides whether a queue is a waiting queue. If it cannot, it leaves the queue out.
func (r *recognition) findRole(queue string) {
	targets := r.targets[queue]
	expires := func(name string) bool { return r.settings[name].Has("message-ttl") }
	returns := slices.ContainsFunc(targets, func(target string) bool { return slices.Contains(r.targets[target], queue) })
	worked := slices.ContainsFunc(targets, func(target string) bool { return r.consumed[target] })
	switch {
	case len(targets) == 0, r.consumed[queue], returns && !expires(queue) && slices.ContainsFunc(targets, expires):
	case worked && (expires(queue) || !returns), returns && expires(queue) && !slices.ContainsFunc(targets, expires):
		r.waits[queue] = true
	default:
		r.left = append(r.left, fmt.Sprintf("queue %q: neither it nor %s has a consumer, so it is not clear which one is the work queue: "+
			"start the consumers, and run the command again", queue, list(targets)))
		delete(r.targets, queue)
	}
}

// groups joins the queues between which dead letters move. A waiting queue without a TTL is a group of its own.
func (r *recognition) groups() (groups [][]string) {
	near := map[string][]string{}
	for queue, targets := range r.targets {
		if r.waits[queue] && !r.settings[queue].Has("message-ttl") {
			groups = append(groups, []string{queue})
			continue
		}
		for _, target := range targets {
			near[queue], near[target] = append(near[queue], target), append(near[target], queue)
		}
	}
	seen := map[string]bool{}
	for first := range near {
		var group []string
		for next := []string{first}; len(next) > 0; next = next[1:] {
			if !seen[next[0]] {
				seen[next[0]] = true
				group, next = append(group, next[0]), append(next, near[next[0]]...)
			}
		}
		if group != nil {
			groups = append(groups, topology.Distinct(group))
		}
	}
	slices.SortFunc(groups, slices.Compare)
	return groups
}

// addGroup adds the retry or the delay that a group of queues is.
func (r *recognition) addGroup(group []string) {
	if len(group) == 1 {
		work := topology.Distinct(slices.Clone(r.targets[group[0]]))
		r.delays = append(r.delays, delay{r.free(plain(work[0]) + ".later"), group[0], work})
		return
	}
	var found retry
	isWaiting := func(queue string) bool { return r.waits[queue] }
	for _, queue := range group {
		live, targets := r.vhost.Queues[queue], r.targets[queue]
		returned := slices.ContainsFunc(group, func(other string) bool { return isWaiting(other) && slices.Contains(r.targets[other], queue) })
		switch {
		case len(targets) == 0 && !returned:
			found.parking = append(found.parking, queue)
		case live.Exclusive || live.AutoDelete || live.Transient || live.Type == "stream":
			r.left = append(r.left, fmt.Sprintf("retries of %s: %q is not a durable classic or quorum queue", list(group), queue))
			return
		case isWaiting(queue):
			ttl, _ := r.settings[queue].Number("message-ttl")
			found.waiting, found.delays = append(found.waiting, queue), append(found.delays, time.Duration(ttl)*time.Millisecond)
		default:
			found.work = append(found.work, queue)
			found.circular = found.circular || slices.ContainsFunc(targets, isWaiting)
			if slices.ContainsFunc(slices.Collect(maps.Keys(live.Arguments)), deadLetters) {
				r.successors[queue] = r.free(queue + ".v2")
			}
		}
	}
	base := plain(found.work[0])
	delete(r.named, base) // a pipeline can have the name of its queue
	found.name, found.delays = r.free(base, base+".retries"), topology.Distinct(found.delays)
	r.retries = append(r.retries, found)
}

func deadLetters(argument string) bool { return strings.HasPrefix(argument, "x-dead-letter-") }

var (
	notInNames = regexp.MustCompile(`[^\pL\pN._-]+`)
	// ofRetries matches what follows a name in the names of the objects of pipelines and delayed exchanges.
	ofRetries = regexp.MustCompile(`^\.(dlx|inbox|retry|return|failed|deliver|delay)(\.|$)`)
)

// free returns the first name without objects yet. If all are taken, it numbers the last one.
func (r *recognition) free(names ...string) string {
	last := names[len(names)-1]
	for number := 2; ; number++ {
		for _, name := range names {
			if !r.named[name] && !isTaken(r.vhost.Queues, name) && !isTaken(r.vhost.Exchanges, name) {
				r.named[name] = true
				return name
			}
		}
		names = []string{fmt.Sprint(last, number)}
	}
}

func isTaken[T any](existing map[string]T, name string) bool {
	for other := range existing {
		if rest, begins := strings.CutPrefix(other, name); begins && ofRetries.MatchString(rest) {
			return true
		}
	}
	return false
}

// plain is a name like a queue's, for a pipeline or delayed exchange.
func plain(queue string) string {
	return cmp.Or(strings.Trim(notInNames.ReplaceAllString(queue, "-"), "-"), "retries")
}

// list quotes names, and joins them.
func list(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = strconv.Quote(name)
	}
	if last := len(texts) - 1; last > 0 {
		return strings.Join(texts[:last], ", ") + " and " + texts[last]
	}
	return strings.Join(texts, "")
}
