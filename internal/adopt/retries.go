package adopt

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// retry has the work queues and the waiting queues of a retry by hand, and the name of the pipeline that takes its place. A delay has
// a single waiting queue, and a delayed exchange takes its place.
type retry struct {
	name          string
	work, waiting []*queue
}

// queue is a queue, and its part in the retries.
type queue struct {
	topology.Settings
	name     string
	consumed bool
	role     role
	// targets are the queues that can get its dead letters, without itself. sources are the same the other way round.
	targets, sources []*queue
	// group are the queues of the same retry.
	group *[]*queue
	// exchanges lead to it, except the default exchange.
	exchanges []string
	// next is the queue that a pipeline gets: itself, or a new one if its arguments make it dead-letter.
	next string
}

// role says what a queue is for. A work queue has a consumer, and a waiting queue has none.
type role int

const (
	// resting queues have no dead letters, and get nothing back.
	resting role = iota
	// ours are queues of pipelines and delayed exchanges, and attached queues.
	ours
	// unclear queues could have several roles, or dead-letter to ours. Nothing is proposed for them.
	unclear
	// waiting queues have a TTL. In delaying queues, each message has its own.
	waiting
	delaying
	// working queues have consumers that retry or park what fails.
	working
)

func (q *queue) String() string { return q.name }

func (q *queue) isWaiting() bool   { return q.role == waiting || q.role == delaying }
func (q *queue) deadLetters() bool { return len(q.targets) > 0 }

func (q *queue) deadLetterExchange() string {
	name, _ := q.Text("dead-letter-exchange")
	return name
}

// ttl is a queue's TTL, 0 for none. Operators limit TTLs, but do not choose them.
func (q *queue) ttl() time.Duration {
	s := q.Settings
	s.Operator = nil
	ttl, _ := s.Number("message-ttl")
	return time.Duration(ttl) * time.Millisecond
}

// recognise finds the retries of the vhost, except pipelines, and names the queues that it does not understand.
func (w *writer) recognise() {
	for _, visit := range []func(*queue){w.findRole, (*queue).findNear, w.replace} { // each asks what the one before found of all queues
		for _, name := range sorted(w.queues) {
			visit(w.queues[name])
		}
	}
}

// findQueues finds the queues, and where their dead letters can go.
func (w *writer) findQueues(consumed map[string]bool) {
	lookup := topology.NewLookup(w.vhost)
	w.unreadable = lookup.Unreadable()
	w.names = slices.Concat(sorted(w.vhost.Queues), sorted(w.vhost.Exchanges))
	for name := range w.vhost.Queues {
		q := &queue{Settings: lookup.Queue(name), name: name, consumed: consumed[name]}
		q.group = &[]*queue{q}
		if _, owned := w.owned.Queues[name]; owned || q.SetBy(w.owned.Policies) {
			q.role = ours
		}
		w.queues[name] = q
	}
	for _, b := range w.vhost.Bindings {
		q, exists := w.queues[b.Destination]
		if !exists || b.ToExchange || b.Source == "" {
			continue
		}
		q.exchanges = append(q.exchanges, b.Source)
		if pipeline.AttachedBy(b) != "" {
			q.role = ours
		}
	}
	targets := audit.DeadLetterTargets(w.vhost)
	for _, name := range sorted(targets) {
		q := w.queues[name]
		if len(targets[name]) == 0 && q.role != ours {
			w.leave("queue %q: its dead letters reach no queue", name)
		}
		for _, target := range targets[name] {
			if to := w.queues[target]; to != q { // what comes back at once does not wait
				q.targets, to.sources = append(q.targets, to), append(to.sources, q)
			}
		}
	}
}

// findRole tells waiting queues from queues whose role is not clear.
func (w *writer) findRole(q *queue) {
	switch {
	case q.role == ours || !q.deadLetters():
	case slices.ContainsFunc(q.targets, func(target *queue) bool { return target.role == ours }):
		q.role = unclear
	case !q.consumed:
		if q.role = delaying; q.ttl() > 0 {
			q.role = waiting
		}
		if why := q.doubt(); why != "" {
			q.role = unclear
			w.leave("queue %q: %s", q, why)
		}
	}
}

// doubt says why a queue without consumers can be something else than a waiting queue, or "".
func (q *queue) doubt() string {
	expires := q.role == waiting
	worksOn := func(target *queue) bool {
		return target.deadLetters() || target.hasOwnWay() || expires && len(target.sources) > 1
	}
	idle := slices.DeleteFunc(slices.Clone(q.targets), func(target *queue) bool { return target.consumed })
	return cmp.Or(
		when(len(idle) > 0, "neither it nor %s has a consumer, so it is not clear which one is the work queue: "+
			"start the consumers, and run the command again", list(idle)),
		when(len(q.sources) > 0 && !slices.Contains(q.sources, q.targets[0]),
			"dead letters of %s wait there, and go on to %s", list(q.sources), list(q.targets)),
		when(!expires && len(q.sources) > 0, "it has no TTL and no consumer, so dead letters of %s stay there", list(q.sources)),
		when(!expires && q.PolicyOf("dead-letter-exchange") != "" || !slices.ContainsFunc(q.targets, worksOn),
			"it has no consumer. It can be a work queue that is not in use"),
	)
}

// when is a reason if something is so, and otherwise "".
func when(is bool, format string, arguments ...any) string {
	if !is {
		return ""
	}
	return fmt.Sprintf(format, arguments...)
}

// hasOwnWay reports whether messages come to a queue through an exchange that no waiting queue could dead-letter to.
func (q *queue) hasOwnWay() bool {
	return slices.ContainsFunc(q.exchanges, func(exchange string) bool {
		return !slices.ContainsFunc(q.sources, func(source *queue) bool { return source.deadLetterExchange() == exchange })
	})
}

// findNear finds whether a queue is a work queue, and joins it with its waiting queues. Without one, it joins those with the same parking
// queue. With one, the parking queue can be shared with other retries.
func (q *queue) findNear() {
	waits := slices.ContainsFunc(slices.Concat(q.targets, q.sources), (*queue).isWaiting)
	if q.role == resting && (waits || q.deadLetters()) {
		q.role = working
	}
	if q.role != working && q.role != waiting {
		return
	}
	for _, target := range q.targets {
		if q.role == waiting || !waits || target.deadLetters() {
			q.join(target)
		}
	}
}

// join joins the groups of two queues.
func (q *queue) join(other *queue) {
	if q.group != other.group {
		*q.group = append(*q.group, *other.group...)
		for _, member := range *other.group {
			member.group = q.group
		}
	}
}

// replace finds what takes the place of a queue's group, or says why nothing does.
func (w *writer) replace(q *queue) {
	group := *q.group
	*q.group = nil // its other queues have nothing left to do
	alone := len(group) == 1 && q.role != delaying
	if alone && q.role == working && q.deadLetters() {
		w.leave("queue %q: messages come back to it through a delayed exchange, and its dead letters go where they went", q)
	}
	if alone || len(group) == 0 {
		return
	}
	slices.SortFunc(group, func(a, b *queue) int { return strings.Compare(a.name, b.name) })
	for _, member := range group {
		if why := w.refuses(member); why != "" {
			w.leave("retries of %s: %s", list(group), why)
			return
		}
	}
	w.addRetry(group)
}

// refuses says why a queue gets no steps, or "".
func (w *writer) refuses(q *queue) string {
	inFront := slices.DeleteFunc(slices.Clone(q.sources), func(source *queue) bool { return source.role != unclear || source.ttl() == 0 })
	onward := slices.DeleteFunc(slices.Clone(q.targets), func(target *queue) bool { return target.isWaiting() || !target.deadLetters() })
	passes := w.isTemporary(object{"queue", q.name}) || q.AutoDelete || q.Transient || q.Type == "stream" || q.Has("expires")
	works, next := q.role == working, w.queues[q.name+successor]
	overflow, _ := q.Text("overflow")
	return cmp.Or(
		when(!w.wants(q.name), "--only leaves out %q", q),
		when(q.role == unclear, "the role of %q is not clear", q),
		when(q.role == delaying && w.vhost.Exchanges[q.deadLetterExchange()].Arguments["alternate-exchange"] != nil,
			"%q dead-letters to an exchange with an alternate exchange, and a delayed exchange has none", q),
		when(q.isWaiting() && len(inFront) > 0, "%s can be a waiting queue in front of %q", list(inFront), q),
		when(q.role != resting && passes, "%q is not a lasting classic or quorum queue", q),
		when(works && next != nil, "%q has the successor %q, so go on with the steps from before", q, next),
		when(works && len(onward) > 0, "the work queue %q dead-letters to %s, which dead-letters on", q, list(onward)),
		when(works && q.Limited() && strings.HasPrefix(overflow, "reject-publish"),
			"%q refuses messages if it is full, and would then stop all retries", q),
	)
}

// successor is what a new queue adds to the name of the old one.
const successor = ".v2"

// addRetry tells the queues of a group apart.
func (w *writer) addRetry(group []*queue) {
	var found retry
	for _, q := range group {
		switch {
		case q.isWaiting():
			found.waiting = append(found.waiting, q)
		case q.role == working:
			found.work = append(found.work, q)
			q.next = q.name
			if slices.ContainsFunc(sorted(q.Arguments), deadLetters) {
				q.next += successor
			}
		}
	}
	if len(found.work) == 0 {
		found.name = w.free(plain(group[0].name)+".delayed", "2", ofDelayedExchange)
	} else {
		found.name = w.free(plain(found.work[0].name), ".retries", ofPipeline)
	}
	w.retries = append(w.retries, found)
}

func deadLetters(argument string) bool { return strings.HasPrefix(argument, "x-dead-letter-") }

// These match what follows a name in the names of its objects.
const (
	ofPipeline        = `\.(dlx|inbox|retry|return|failed)(\.|$)`
	ofDelayedExchange = `($|\.(deliver|delay)(\.|$))`
)

// free returns a name without objects yet. It appends to a name that is taken.
func (w *writer) free(name, suffix, objects string) string {
	taken := regexp.MustCompile("^" + regexp.QuoteMeta(name) + objects)
	given := slices.ContainsFunc(w.retries, func(r retry) bool { return r.name == name })
	if given || slices.ContainsFunc(w.names, taken.MatchString) {
		return w.free(name+suffix, suffix, objects)
	}
	return name
}

var notInNames = regexp.MustCompile(`[^\pL\pN._-]+|\.retry\.`)

// plain is a name like a queue's, for a pipeline or delayed exchange.
func plain(queue string) string {
	return cmp.Or(strings.Trim(notInNames.ReplaceAllString(queue, "-"), "-"), "retries")
}

// list quotes names, and joins them.
func list[T any](names []T) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = strconv.Quote(fmt.Sprint(name))
	}
	if last := len(texts) - 1; last > 0 {
		return strings.Join(texts[:last], ", ") + " and " + texts[last]
	}
	return strings.Join(texts, "")
}
