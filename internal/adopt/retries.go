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
	// successors are the names of new work queues, by the queue whose arguments make it dead-letter.
	successors map[string]string
}

// attached are the queues that the pipeline gets.
func (r retry) attached() []string {
	queues := slices.Clone(r.work)
	for i, queue := range queues {
		queues[i] = cmp.Or(r.successors[queue], queue)
	}
	return queues
}

// delay is a waiting queue without a TTL of its own, whose place a delayed exchange of this name takes.
type delay struct {
	name, waiting string
	work          []string
}

// recognition finds retries by hand.
type recognition struct {
	vhost    topology.Vhost
	settings map[string]topology.Settings
	// targets has the queues that can get a queue's dead letters, without itself.
	targets map[string][]string
	// consumed are the queues with a consumer. waits are the waiting queues. named are the names that are given.
	consumed, waits, named map[string]bool

	retries []retry
	delays  []delay
	left    []string
}

// recognise finds the retries of a vhost, except those of pipelines, and names the queues that it does not understand. If two queues could
// both be the work queue, the one with a consumer is.
func recognise(vhost topology.Vhost, owned topology.Topology, consumed map[string]bool) recognition {
	r := recognition{
		vhost: vhost, targets: audit.DeadLetterTargets(vhost), settings: map[string]topology.Settings{},
		consumed: consumed, waits: map[string]bool{}, named: map[string]bool{},
	}
	lookup := topology.NewLookup(vhost)
	for name := range vhost.Queues {
		r.settings[name] = lookup.Queue(name)
	}
	isOwned := func(name string) bool { _, is := owned.Queues[name]; return is }
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
	for _, group := range r.groups() {
		r.addGroup(group)
	}
	return r
}

// keep leaves out the retries of which a queue is not wanted, and names those of which only some are.
func (r *recognition) keep(wants func(names ...string) bool) {
	unwanted := func(queues []string) bool {
		missing := slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return wants(queue) })
		if len(missing) > 0 && len(missing) < len(queues) {
			r.left = append(r.left, fmt.Sprintf("retries of %s: --only leaves out %s", list(queues), list(missing)))
		}
		return len(missing) > 0
	}
	r.retries = slices.DeleteFunc(r.retries, func(each retry) bool { return unwanted(slices.Concat(each.work, each.waiting, each.parking)) })
	r.delays = slices.DeleteFunc(r.delays, func(each delay) bool { return unwanted(append(slices.Clone(each.work), each.waiting)) })
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
		r.delays = append(r.delays, delay{r.free(ofDelayedExchange, nameAfter(work[0])+".later"), group[0], work})
		return
	}
	found := retry{successors: map[string]string{}}
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
				found.successors[queue] = r.free(ofQueue, queue+".v2")
			}
		}
	}
	base := nameAfter(found.work[0])
	found.name, found.delays = r.free(ofPipeline, base, base+".retries"), topology.Distinct(found.delays)
	r.retries = append(r.retries, found)
}

func deadLetters(argument string) bool { return strings.HasPrefix(argument, "x-dead-letter-") }

var notInNames = regexp.MustCompile(`[^\pL\pN._-]+`)

// These match what follows a name in the names of its objects.
var (
	ofQueue           = regexp.MustCompile(`^$`)
	ofPipeline        = regexp.MustCompile(`^\.(dlx|inbox|retry|return|failed)(\.|$)`)
	ofDelayedExchange = regexp.MustCompile(`^$|^\.(deliver|delay)(\.|$)`)
)

// free returns the first name without objects yet. If all are taken, it numbers the last one.
func (r *recognition) free(objects *regexp.Regexp, names ...string) string {
	last := names[len(names)-1]
	for number := 2; ; number++ {
		for _, name := range names {
			if !r.named[name] && !isTaken(r.vhost.Queues, name, objects) && !isTaken(r.vhost.Exchanges, name, objects) {
				r.named[name] = true
				return name
			}
		}
		names = []string{last + strconv.Itoa(number)}
	}
}

func isTaken[T any](existing map[string]T, name string, objects *regexp.Regexp) bool {
	for other := range existing {
		if rest, begins := strings.CutPrefix(other, name); begins && objects.MatchString(rest) {
			return true
		}
	}
	return false
}

// nameAfter is a name like a queue's that has only letters, digits, dots, dashes and underscores.
func nameAfter(queue string) string {
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
