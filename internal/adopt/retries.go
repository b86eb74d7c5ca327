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
	// circular says that a work queue dead-letters to a waiting queue, and unproved that none dead-letters at all.
	circular, unproved bool
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
	// targets has the queues that can get a queue's dead letters, without itself. sources has the same the other way round.
	targets, sources map[string][]string
	// successors are the names of new work queues, by the queue whose arguments make it dead-letter.
	successors map[string]string
}

// recognition finds retries by hand, and enters them in the writer.
type recognition struct {
	*writer
	settings map[string]topology.Settings
	// consumed are the queues with a consumer. waits are the waiting queues. unknown says why a queue's role is not known. given are the
	// names of new objects.
	consumed, waits, given map[string]bool
	unknown                map[string]string
}

// recognise finds the retries of the vhost, except pipelines, and names the queues that it does not understand. A work queue has
// a consumer, and a waiting queue has none.
func (w *writer) recognise(consumed map[string]bool) {
	r := recognition{
		writer: w, settings: map[string]topology.Settings{}, consumed: consumed,
		waits: map[string]bool{}, given: map[string]bool{}, unknown: map[string]string{},
	}
	r.targets, r.sources, r.successors = audit.DeadLetterTargets(w.vhost), map[string][]string{}, map[string]string{}
	for name := range w.vhost.Queues {
		r.settings[name] = w.lookup.Queue(name)
	}
	queues := slices.Sorted(maps.Keys(r.targets))
	r.link(queues)
	for _, queue := range queues {
		if why := r.findRole(queue); why != "" {
			r.unknown[queue] = why
			w.leave("queue %q: %s", queue, why)
		}
	}
	grouped := r.groups()
	for _, queue := range queues {
		inGroup := func(group []string) bool { return slices.Contains(group, queue) }
		if r.isWork(queue) && !r.isLeftOut(queue) && !slices.ContainsFunc(grouped, inGroup) {
			w.leave("queue %q: messages come back to it through a delayed exchange, and its dead letters go where they went", queue)
		}
	}
	for _, group := range grouped {
		if why := r.refuses(group); why != "" {
			w.leave("retries of %s: %s", list(group), why)
		} else if len(group) == 1 {
			name := r.free(ofDelayedExchange, plain(group[0])+".delayed")
			w.delays = append(w.delays, delay{name, group[0], r.targets[group[0]]})
		} else {
			r.findRetry(group)
		}
	}
}

// link leaves out the dead letters that come back to their queue at once, and finds the sources of the others.
func (r *recognition) link(queues []string) {
	for _, queue := range queues {
		self := slices.Contains(r.targets[queue], queue)
		r.targets[queue] = slices.DeleteFunc(r.targets[queue], func(target string) bool { return target == queue })
		if len(r.targets[queue]) == 0 && !self && !r.isOurs(queue) {
			r.leave("queue %q: its dead letters reach no queue", queue)
		}
		for _, target := range r.targets[queue] {
			r.sources[target] = append(r.sources[target], queue)
		}
	}
}

func (r *recognition) isWaiting(queue string) bool { return r.waits[queue] }

// isWork reports whether consumers of a queue retry, or park what fails.
func (r *recognition) isWork(queue string) bool {
	return !r.waits[queue] && (len(r.targets[queue]) > 0 || slices.ContainsFunc(r.sources[queue], r.isWaiting))
}

// isOurs reports whether a queue belongs to a pipeline or delayed exchange, or is attached.
func (r *recognition) isOurs(queue string) bool {
	_, owned := r.owned.Queues[queue]
	return owned || r.attachedQueues[queue]
}

// isLeftOut reports whether a queue is not understood, or has to do with a pipeline or delayed exchange already.
func (r *recognition) isLeftOut(queue string) bool {
	return r.unknown[queue] != "" || r.isOurs(queue) || slices.ContainsFunc(r.targets[queue], r.isOurs)
}

// findRole decides whether a queue is a waiting queue, or says why that is not clear.
func (r *recognition) findRole(queue string) (why string) {
	targets := r.targets[queue]
	consumed := func(name string) bool { return r.consumed[name] }
	worksOn := func(target string) bool { return len(r.targets[target]) > 0 || r.hasOwnWay(target) }
	expires, fed := r.ttl(queue) > 0, r.sources[queue]
	switch {
	case len(targets) == 0, r.isOurs(queue), slices.ContainsFunc(targets, r.isOurs), r.consumed[queue]:
	case !slices.ContainsFunc(targets, consumed):
		return fmt.Sprintf("neither it nor %s has a consumer, so it is not clear which one is the work queue: "+
			"start the consumers, and run the command again", list(targets))
	case len(slices.DeleteFunc(slices.Clone(targets), consumed)) > 0:
		return "it dead-letters to several queues, and not all of them have a consumer"
	case !expires && len(fed) > 0:
		return fmt.Sprintf("it has no TTL and no consumer, so dead letters of %s stay there", list(fed))
	case !expires && r.settings[queue].PolicyOf("dead-letter-exchange") != "", !slices.ContainsFunc(targets, worksOn):
		return "it has no consumer. It can be a work queue that is not in use"
	default:
		r.waits[queue] = true
	}
	return ""
}

// hasOwnWay reports whether messages come to a queue through an exchange that no waiting queue could dead-letter to, or from several.
func (r *recognition) hasOwnWay(queue string) bool {
	var through []string
	for _, source := range r.sources[queue] {
		through = append(through, r.deadLetterExchange(source))
	}
	return len(through) > 1 || slices.ContainsFunc(r.vhost.Bindings, func(b topology.Binding) bool {
		return b.Source != "" && !b.ToExchange && b.Destination == queue && !slices.Contains(through, b.Source)
	})
}

// ttl is a queue's TTL, 0 for none. Operators limit TTLs, but do not choose them.
func (r *recognition) ttl(queue string) time.Duration {
	s := r.settings[queue]
	s.Operator = nil
	ttl, _ := s.Number("message-ttl")
	return time.Duration(ttl) * time.Millisecond
}

// groups joins work queues and their waiting queues, and work queues without one with the same parking queue. A waiting queue
// without a TTL is a group of its own.
func (r *recognition) groups() (groups [][]string) {
	near := map[string][]string{}
	for queue, targets := range r.targets {
		switch {
		case r.isLeftOut(queue):
		case r.waits[queue] && r.ttl(queue) == 0:
			groups = append(groups, []string{queue})
		default:
			waits := r.waits[queue] || slices.ContainsFunc(slices.Concat(targets, r.sources[queue]), r.isWaiting)
			for _, target := range targets {
				if !waits || r.waits[queue] || len(r.targets[target]) > 0 { // waiting queues of others can share a parking queue
					near[queue], near[target] = append(near[queue], target), append(near[target], queue)
				}
			}
		}
	}
	groups = append(groups, connected(near)...)
	slices.SortFunc(groups, slices.Compare)
	return groups
}

// connected returns the groups that neighbours form.
func connected(near map[string][]string) (groups [][]string) {
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
	return groups
}

// refuses says why a group of queues gets no steps, or "".
func (r *recognition) refuses(group []string) string {
	for _, queue := range group {
		why := ""
		switch {
		case r.unknown[queue] != "":
			why = fmt.Sprintf("the role of %q is not clear", queue)
		case r.waits[queue]:
			why = r.refusesWaiting(queue)
		case r.isWork(queue):
			why = r.refusesWork(queue)
		}
		if !r.wants(queue) {
			why = fmt.Sprintf("--only leaves out %q", queue)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

func (r *recognition) refusesWaiting(queue string) string {
	for _, source := range r.sources[queue] {
		if r.unknown[source] != "" && r.ttl(source) > 0 {
			return fmt.Sprintf("%q can be a waiting queue in front of %q", source, queue)
		}
	}
	return r.refusesPassing(queue)
}

func (r *recognition) refusesWork(queue string) string {
	if next := queue + ".v2"; r.attachedQueues[next] {
		return fmt.Sprintf("%q has the successor %q, so go on with the steps from before", queue, next)
	}
	for _, target := range r.targets[queue] {
		if !r.waits[target] && len(r.targets[target]) > 0 {
			return fmt.Sprintf("the work queue %q dead-letters to %q, which dead-letters on", queue, target)
		}
	}
	if s := r.settings[queue]; s.AtLeastOnce() && s.Limited() {
		return fmt.Sprintf("%q dead-letters at least once, and has a length limit, which a pipeline refuses", queue)
	}
	return r.refusesPassing(queue)
}

func (r *recognition) refusesPassing(queue string) string {
	live := r.vhost.Queues[queue]
	if live.Exclusive || live.AutoDelete || live.Transient || live.Type == "stream" || r.settings[queue].Has("expires") {
		return fmt.Sprintf("%q is not a lasting classic or quorum queue", queue)
	}
	return ""
}

// findRetry tells the queues of a group apart.
func (r *recognition) findRetry(group []string) {
	found := retry{unproved: true}
	for _, queue := range group {
		switch {
		case r.waits[queue]:
			found.waiting, found.delays = append(found.waiting, queue), append(found.delays, r.ttl(queue))
		case r.isWork(queue):
			found.work = append(found.work, queue)
			found.unproved = found.unproved && len(r.targets[queue]) == 0
			found.circular = found.circular || slices.ContainsFunc(r.targets[queue], r.isWaiting)
			if slices.ContainsFunc(slices.Collect(maps.Keys(r.vhost.Queues[queue].Arguments)), deadLetters) {
				r.successors[queue] = r.free(ofQueue, queue+".v2")
			}
			for _, target := range r.targets[queue] {
				if !r.waits[target] {
					found.parking = append(found.parking, target)
				}
			}
		}
	}
	base := plain(found.work[0])
	found.name, found.delays = r.free(ofPipeline, base, base+".retries"), topology.Distinct(found.delays)
	found.parking = topology.Distinct(found.parking)
	r.retries = append(r.retries, found)
}

func deadLetters(argument string) bool { return strings.HasPrefix(argument, "x-dead-letter-") }

var (
	notInNames = regexp.MustCompile(`[^\pL\pN._-]+|\.retry\.`)
	// These match what follows a name in the names of its objects.
	ofQueue           = regexp.MustCompile(`^$`)
	ofPipeline        = regexp.MustCompile(`^\.(dlx|inbox|retry|return|failed)(\.|$)`)
	ofDelayedExchange = regexp.MustCompile(`^$|^\.(deliver|delay)(\.|$)`)
)

// free returns the first name without objects yet. If all are taken, it numbers the last one.
func (r *recognition) free(objects *regexp.Regexp, names ...string) string {
	last := names[len(names)-1]
	for number := 2; ; number++ {
		for _, name := range names {
			if !r.given[name] && !isTaken(r.vhost.Queues, name, objects) && !isTaken(r.vhost.Exchanges, name, objects) {
				r.given[name] = true
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
