package adopt

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// retry is a retry made by hand, and the pipeline or delayed exchange that takes its place.
type retry struct {
	// name is the name of the pipeline or delayed exchange.
	name string
	// work are the queues that consumers work on. Messages wait in waiting, and rest in parking.
	work, waiting, parking []string
	// delays are the waits of the waiting queues, shortest first.
	delays []time.Duration
	// isDelayed says that each message has its own delay: the waiting queue has no TTL.
	isDelayed bool
	// circular says that the work queue dead-letters to a waiting queue.
	circular bool
	// successors are the names of new work queues, by the queue whose arguments make it dead-letter.
	successors map[string]string
}

func (r retry) queues() []string { return slices.Concat(r.work, r.waiting, r.parking) }

// recognition finds retries.
type recognition struct {
	vhost    topology.Vhost
	consumed map[string]bool
	// targets has the queues that can get a queue's dead letters, without itself.
	targets  map[string][]string
	settings map[string]topology.Settings
	// waits says which queues are waiting queues.
	waits map[string]bool
	left  []string
}

// recognise finds the retries of a vhost, except those of pipelines. It says which queues it does not understand. Of two
// queues that could both be the work queue, the one with a consumer is.
func recognise(vhost topology.Vhost, owned topology.Topology, consumed map[string]bool) (retries []retry, left []string) {
	r := recognition{vhost: vhost, consumed: consumed, targets: audit.DeadLetterTargets(vhost), settings: map[string]topology.Settings{}}
	r.waits = map[string]bool{}
	lookup := topology.NewLookup(vhost)
	for _, queue := range slices.Sorted(maps.Keys(r.targets)) {
		targets := r.targets[queue]
		if len(targets) == 0 {
			r.left = append(r.left, fmt.Sprintf("queue %q: its dead letters reach no queue", queue))
		}
		isOurs := func(name string) bool { _, is := owned.Queues[name]; return is }
		r.targets[queue] = slices.DeleteFunc(targets, func(target string) bool { return target == queue })
		if isOurs(queue) || slices.ContainsFunc(targets, isOurs) {
			delete(r.targets, queue)
		}
	}
	for name := range vhost.Queues {
		r.settings[name] = lookup.Queue(name)
	}
	for _, queue := range slices.Sorted(maps.Keys(r.targets)) {
		r.findRole(queue)
	}
	for _, group := range r.groups() {
		retries = append(retries, r.retriesOf(group)...)
	}
	r.nameAll(retries)
	return retries, r.left
}

// findRole decides whether a queue is a waiting queue. If it cannot, it leaves the queue out.
func (r *recognition) findRole(queue string) {
	targets := r.targets[queue]
	_, expires := r.settings[queue].Number("message-ttl")
	returns := slices.ContainsFunc(targets, func(target string) bool { return slices.Contains(r.targets[target], queue) })
	worked := slices.ContainsFunc(targets, func(target string) bool { return r.consumed[target] })
	expiresThere := slices.ContainsFunc(targets, func(target string) bool { return r.settings[target].Has("message-ttl") })
	switch {
	case len(targets) == 0, r.consumed[queue], returns && !expires && expiresThere:
	case worked && (expires || !returns), returns && expires && !expiresThere:
		r.waits[queue] = true
	default:
		r.left = append(r.left, fmt.Sprintf("queue %q: neither it nor %s has a consumer, so it is not clear which one is the work queue: "+
			"start the consumers, and run the command again", queue, quotedList(targets)))
		delete(r.targets, queue)
	}
}

// groups joins the queues between which dead letters move. A waiting queue without a TTL is a group of its own.
func (r *recognition) groups() (groups [][]string) {
	near := map[string][]string{}
	for queue, targets := range r.targets {
		if r.isDelayed(queue) {
			groups = append(groups, []string{queue})
			continue
		}
		for _, target := range targets {
			near[queue], near[target] = append(near[queue], target), append(near[target], queue)
		}
	}
	seen := map[string]bool{}
	for _, first := range slices.Sorted(maps.Keys(near)) {
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

func (r *recognition) isDelayed(queue string) bool {
	return r.waits[queue] && !r.settings[queue].Has("message-ttl")
}

// retriesOf returns the retry that a group of queues is, or none.
func (r *recognition) retriesOf(group []string) []retry {
	found := retry{successors: map[string]string{}, isDelayed: r.isDelayed(group[0])}
	worked := map[string]bool{}
	for _, queue := range group {
		for _, target := range r.targets[queue] {
			worked[target] = worked[target] || r.waits[queue]
		}
		worked[queue] = worked[queue] || len(r.targets[queue]) > 0
	}
	for _, queue := range slices.Sorted(maps.Keys(worked)) {
		live := r.vhost.Queues[queue]
		switch {
		case !worked[queue]:
			found.parking = append(found.parking, queue)
		case live.Exclusive || live.AutoDelete || live.Transient || r.settings[queue].Type == "stream":
			r.left = append(r.left, fmt.Sprintf("retries of %s: %q is not a durable classic or quorum queue", quotedList(group), queue))
			return nil
		case r.waits[queue]:
			found.waiting = append(found.waiting, queue)
			if ttl, has := r.settings[queue].Number("message-ttl"); has {
				found.delays = append(found.delays, time.Duration(ttl)*time.Millisecond)
			}
		default:
			found.work = append(found.work, queue)
			found.circular = found.circular || slices.ContainsFunc(r.targets[queue], func(target string) bool { return r.waits[target] })
			if !found.isDelayed && slices.ContainsFunc(slices.Collect(maps.Keys(live.Arguments)), deadLetters) {
				found.successors[queue] = r.free(queue+".v%d", 2, func(name string) bool { _, taken := r.vhost.Queues[name]; return taken })
			}
		}
	}
	found.delays = topology.Distinct(found.delays)
	return []retry{found}
}

func deadLetters(argument string) bool { return strings.HasPrefix(argument, "x-dead-letter-") }

// free returns the first name with a number that is not taken.
func (r *recognition) free(format string, number int, taken func(string) bool) string {
	for ; taken(fmt.Sprintf(format, number)); number++ {
	}
	return fmt.Sprintf(format, number)
}

var notInNames = regexp.MustCompile(`[^\pL\pN._-]+`)

// nameAll gives each retry a name for which no object exists.
func (r *recognition) nameAll(retries []retry) {
	named := map[string]bool{}
	for i, each := range retries {
		base := cmp.Or(strings.Trim(notInNames.ReplaceAllString(each.work[0], "-"), "-"), "retries")
		candidates, taken := []string{base, base + ".retries"}, r.hasPipelineObject
		if each.isDelayed {
			candidates, taken = []string{base + ".later"}, r.hasDelayedObject
		}
		unfit := func(name string) bool { return named[name] || taken(name) }
		free := slices.IndexFunc(candidates, func(name string) bool { return !unfit(name) })
		if free >= 0 {
			retries[i].name = candidates[free]
		} else {
			retries[i].name = r.free(candidates[len(candidates)-1]+"%d", 2, unfit)
		}
		named[retries[i].name] = true
	}
}

// hasPipelineObject reports whether an object exists that a pipeline of this name would have.
func (r *recognition) hasPipelineObject(name string) bool {
	n := pipeline.Names(name)
	return hasAny(r.vhost.Queues, n.CoversQueue) || hasAny(r.vhost.Exchanges, n.OwnsExchange)
}

// hasDelayedObject reports whether an object exists that a delayed exchange of this name would have.
func (r *recognition) hasDelayedObject(name string) bool {
	isIts := func(other string) bool {
		return other == name || other == name+".deliver" || strings.HasPrefix(other, name+".delay.")
	}
	return hasAny(r.vhost.Queues, isIts) || hasAny(r.vhost.Exchanges, isIts)
}

func hasAny[T any](objects map[string]T, is func(name string) bool) bool {
	for name := range objects {
		if is(name) {
			return true
		}
	}
	return false
}

func quotedList(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%q", name)
	}
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}
