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
func (g graph) sourcesOfRejecting(atLeastOnce bool) queuesBy {
	return g.sourcesOf(func(source, target string) bool {
		return g.settings[source].AtLeastOnce() == atLeastOnce && !g.isOfDelayedExchange(source) && g.rejectsWhenFull(target, atLeastOnce)
	})
}

// sourcesOf returns, for each target of dead letters, the source queues that count.
func (g graph) sourcesOf(counts func(source, target string) bool) queuesBy {
	sources := queuesBy{}
	for _, source := range g.deadLettering() {
		for _, target := range g.targets(source) {
			if counts(source, target) {
				sources[target] = append(sources[target], source)
			}
		}
	}
	return sources
}

// freezingTargets finds queues that hold up other queues' dead letters when they are full.
func freezingTargets(g graph, report func(Finding)) {
	sources := g.sourcesOfRejecting(true)
	for _, target := range sources.keys() {
		overflow, _ := g.settings[target].Text("overflow")
		message := fmt.Sprintf(targetFreezes, target, overflow, queueList(sources[target]))
		if kept := slices.DeleteFunc(slices.Clone(sources[target]), notRefused); len(kept) > 0 {
			message += fmt.Sprintf(targetRefused, queueList(kept))
		}
		report(onTarget(target, sources[target], message, targetFreezesRemedy))
	}
}

// streamTargets finds streams that hold up other queues' dead letters because of a message that they cannot store.
func streamTargets(g graph, report func(Finding)) {
	sources := g.sourcesOf(func(source, target string) bool {
		return g.settings[source].AtLeastOnce() && g.settings[target].Type == "stream"
	})
	for _, target := range sources.keys() {
		report(onTarget(target, sources[target], fmt.Sprintf(streamFreezes, target, queueList(sources[target])), streamFreezesRemedy))
	}
}

// emptyStreams finds streams that get no dead letters, from queues without another target. Before 3.11.14 and 3.12,
// brokers dropped what is not confirmed (rabbitmq-server #7846). Of 3.11, the audit cannot know.
func emptyStreams(g graph, report func(Finding)) {
	sources := g.sourcesOf(func(source, target string) bool {
		drops := g.vhost.Version.Before(3, 11) && !g.settings[source].AtLeastOnce()
		return drops && g.settings[target].Type == "stream" && len(g.targets(source)) == 1
	})
	for _, target := range sources.keys() {
		report(onTarget(target, sources[target], fmt.Sprintf(streamDrops, queueList(sources[target]), target), streamDropsRemedy))
	}
}

// notRefused reports whether a queue is not a pipeline's refused queue.
func notRefused(queue string) bool {
	return !strings.HasSuffix(queue, pipeline.Names("").RefusedQueue())
}

// losingTargets finds queues that lose dead letters when they are full. A full quorum queue still accepts at-most-once
// dead letters.
func losingTargets(g graph, report func(Finding)) {
	sources := g.sourcesOfRejecting(false)
	for _, target := range sources.keys() {
		if g.settings[target].Type == topology.Classic {
			report(onTarget(target, sources[target],
				fmt.Sprintf(targetLoses, target, queueList(sources[target])), targetLosesRemedy))
		}
	}
}

func onTarget(target string, sources []string, message, remedy string) Finding {
	return group{Object{"queue", target}, append([]string{target}, sources...)}.finding(message, remedy)
}

// ineffectiveAtLeastOnce finds queues whose at-least-once strategy has no effect.
func ineffectiveAtLeastOnce(g graph, report func(Finding)) {
	queues := slices.DeleteFunc(g.deadLettering(), func(name string) bool {
		strategy, _ := g.settings[name].Text("dead-letter-strategy")
		return strategy != topology.AtLeastOnce || g.settings[name].AtLeastOnce()
	})
	for _, group := range g.byOrigin(queues, "dead-letter-strategy") {
		report(group.finding(fmt.Sprintf(atMostOnce, queueList(group.queues)), atMostOnceRemedy))
	}
}
