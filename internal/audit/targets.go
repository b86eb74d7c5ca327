package audit

import "fmt"

// refuses tells whether a full queue refuses what is published to it.
func (g graph) refuses(queue string) bool {
	overflow, _ := g.settings[queue].Text("overflow")
	return g.settings[queue].Limited() && overflow == "reject-publish"
}

// fillable collects, for each queue that refuses messages when it is full, the queues that dead-letter
// to it at least once, or the others.
func (g graph) fillable(atLeastOnce bool) set {
	sources := set{}
	for _, source := range g.deadLettering() {
		if g.settings[source].AtLeastOnce() != atLeastOnce {
			continue
		}
		for _, target := range g.targets(source) {
			if g.refuses(target) {
				sources[target] = append(sources[target], source)
			}
		}
	}
	return sources
}

// freezingTargets finds queues that stop others when they are full.
func freezingTargets(g graph) []Finding {
	var found []Finding
	sources := g.fillable(true)
	for _, target := range sources.keys() {
		f := onQueue(target,
			fmt.Sprintf("Queue %q has a length limit and overflow = reject-publish. While it is full, %s, which dead-letter to it at least once, keep all their dead letters, those for other queues too; after there is room again it takes up to six minutes until they go on.", target, queuesNamed(sources[target])),
			"Take the limit away from a queue that gets dead letters and watch its length instead, or let it drop its oldest messages (overflow = drop-head).")
		f.queues = append(f.queues, target)
		f.queues = append(f.queues, sources[target]...)
		found = append(found, f)
	}
	return found
}

// losingTargets finds queues that lose dead letters when they are full. A quorum queue takes what was
// dead-lettered to it at most once, whatever its limit.
func losingTargets(g graph) []Finding {
	var found []Finding
	sources := g.fillable(false)
	for _, target := range sources.keys() {
		if g.settings[target].Type != "classic" {
			continue
		}
		f := onQueue(target,
			fmt.Sprintf("Queue %q has a length limit and overflow = reject-publish. While it is full, what %s dead-letter to it is dropped.", target, queuesNamed(sources[target])),
			"Take the limit away from a queue that gets dead letters, or set overflow = reject-publish-dlx and a dead-letter exchange, so that what it refuses goes on.")
		f.queues = append(f.queues, target)
		f.queues = append(f.queues, sources[target]...)
		found = append(found, f)
	}
	return found
}

// ineffectiveAtLeastOnce finds queues that are meant to dead-letter at least once and do not.
func ineffectiveAtLeastOnce(g graph) []Finding {
	var queues []string
	for _, name := range g.deadLettering() {
		if strategy, _ := g.settings[name].Text("dead-letter-strategy"); strategy == "at-least-once" && !g.settings[name].AtLeastOnce() {
			queues = append(queues, name)
		}
	}
	var found []Finding
	for _, group := range g.byOrigin(queues, "dead-letter-strategy") {
		found = append(found, group.finding(
			fmt.Sprintf("The dead-letter strategy of %s is at-least-once, but without overflow = reject-publish the broker dead-letters at most once: what dies while a target is missing, full or changing its leader is dropped.", queuesNamed(group.queues)),
			"Set overflow = reject-publish as well. Of quorum queues a policy's overflow beats the argument, so look for one."))
	}
	return found
}
