package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// rejectsWhenFull reports whether a full queue rejects published messages. A publisher that waits for a confirm also
// learns of it from a queue that dead-letters the rejected messages.
func (g graph) rejectsWhenFull(queue string, awaitsConfirm bool) bool {
	overflow, _ := g.settings[queue].Text("overflow")
	return g.settings[queue].Limited() && (overflow == "reject-publish" || awaitsConfirm && overflow == "reject-publish-dlx")
}

// sourcesOfRejecting returns, for each queue that rejects messages when full, the queues that dead-letter to it. These
// are either at-least-once queues or all others.
func (g graph) sourcesOfRejecting(atLeastOnce bool) map[string][]string {
	rejects := func(target string) bool { return g.rejectsWhenFull(target, atLeastOnce) }
	return g.sourcesOf(rejects, func(source string) bool {
		return g.settings[source].AtLeastOnce() == atLeastOnce && !g.isOfDelayedExchange(source)
	})
}

// sourcesOf returns, for each target of dead letters that counts, the other queues that count as its sources.
func (g graph) sourcesOf(targetCounts, sourceCounts func(queue string) bool) map[string][]string {
	found := map[string][]string{}
	for through, sources := range g.sources {
		for _, target := range where(g.targets(through), targetCounts) {
			for _, source := range sources {
				if source != target && sourceCounts(source) {
					found[target] = append(found[target], source)
				}
			}
		}
	}
	for _, sources := range found {
		slices.Sort(sources)
	}
	return found
}

// freezingTargets finds queues that hold up other queues' dead letters when they are full.
func freezingTargets(g graph, report func(Finding)) {
	for target, sources := range g.sourcesOfRejecting(true) {
		overflow, _ := g.settings[target].Text("overflow")
		message := fmt.Sprintf(targetFreezes, target, overflow, queueList(sources))
		if kept := where(sources, isRefused); len(kept) > 0 {
			message += fmt.Sprintf(targetRefused, queueList(kept))
		}
		report(onTarget(target, sources, message, targetFreezesRemedy))
	}
}

// streamTargets finds streams that hold up other queues' dead letters because of a message that they cannot store.
func streamTargets(g graph, report func(Finding)) {
	for target, sources := range g.sourcesOf(g.isStream, func(source string) bool { return g.settings[source].AtLeastOnce() }) {
		report(onTarget(target, sources, fmt.Sprintf(streamFreezes, target, queueList(sources)), streamFreezesRemedy))
	}
}

// emptyStreams finds streams that get no dead letters, from queues without another target. Before 3.11.14 and 3.12,
// brokers dropped what is not confirmed (rabbitmq-server #7846). Of 3.11, the audit cannot know.
func emptyStreams(g graph, report func(Finding)) {
	drops := func(source string) bool {
		targets := g.targets(g.exitOf(source))
		isOnly := len(targets) == 1 || len(targets) == 2 && slices.Contains(targets, source)
		return isOnly && g.vhost.Version.Before(3, 11) && !g.settings[source].AtLeastOnce()
	}
	for target, sources := range g.sourcesOf(g.isStream, drops) {
		report(onTarget(target, sources, fmt.Sprintf(streamDrops, queueList(sources), target), streamDropsRemedy))
	}
}

func (g graph) isStream(queue string) bool { return g.settings[queue].Type == "stream" }

// isRefused reports whether a queue is a pipeline's refused queue.
func isRefused(queue string) bool {
	return strings.HasSuffix(queue, pipeline.Names("").RefusedQueue())
}

// losingTargets finds queues that lose dead letters when they are full. A full quorum queue still accepts at-most-once
// dead letters.
func losingTargets(g graph, report func(Finding)) {
	for target, sources := range g.sourcesOfRejecting(false) {
		if g.settings[target].Type == topology.Classic {
			report(onTarget(target, sources, fmt.Sprintf(targetLoses, target, queueList(sources)), targetLosesRemedy))
		}
	}
}

func onTarget(target string, sources []string, message, remedy string) Finding {
	return about("queue", target, append([]string{target}, sources...)...).says(message, remedy)
}

// ineffectiveAtLeastOnce finds queues whose at-least-once strategy has no effect.
func ineffectiveAtLeastOnce(g graph, report func(Finding)) {
	queues := where(g.dying, func(name string) bool {
		strategy, _ := g.settings[name].Text("dead-letter-strategy")
		return strategy == topology.AtLeastOnce && !g.settings[name].AtLeastOnce()
	})
	for _, on := range g.byOrigin(queues, "dead-letter-strategy") {
		report(on.says(fmt.Sprintf(atMostOnce, queueList(on.queues)), atMostOnceRemedy))
	}
}
