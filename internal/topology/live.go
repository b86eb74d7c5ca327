package topology

import (
	"fmt"
	"maps"
	"slices"
)

// Findings are what a live vhost has to say to a pipeline that is about to be made or changed.
type Findings struct {
	// Problems cannot be solved by anything that the same apply may do before.
	Problems []Problem
	// Exists lists objects that are to be created but exist already.
	Exists []string
	// Missing lists work queues that are not there.
	Missing []string
}

// CheckLive compares a pipeline with a live vhost. Prior is the pipeline as it was, nil if it is
// new; what it owned may exist.
func CheckLive(p Pipeline, prior *Pipeline, vhost Topology) Findings {
	var f Findings
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		workQueue := p.WorkQueues[name]
		live, exists := vhost.Queues[name]
		switch {
		case !exists && !workQueue.Declare:
			f.Missing = append(f.Missing, name)
		case exists && !workQueue.Declare:
			f.Problems = append(f.Problems, checkLiveWorkQueue(p.Names(), name, workQueue, live)...)
		}
	}
	f.Exists = existing(p, prior, vhost)
	return f
}

func existing(p Pipeline, prior *Pipeline, vhost Topology) []string {
	var found []string
	wanted := Expand(p)
	if prior == nil {
		found = appendCommon(found, "exchange", wanted.Exchanges, vhost.Exchanges)
		found = appendCommon(found, "policy", wanted.Policies, vhost.Policies)
		return appendCommon(found, "queue", wanted.Queues, vhost.Queues)
	}
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		live, exists := vhost.Queues[name]
		newlyDeclared := p.WorkQueues[name].Declare && !prior.WorkQueues[name].Declare
		if exists && newlyDeclared && live.Arguments[DeclaredByArgument] != p.Name {
			found = append(found, fmt.Sprintf("queue %q", name))
		}
	}
	return found
}

func appendCommon[W, L any](found []string, kind string, wanted map[string]W, live map[string]L) []string {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if _, exists := live[name]; exists {
			found = append(found, fmt.Sprintf("%s %q", kind, name))
		}
	}
	return found
}

func checkLiveWorkQueue(n Names, name string, workQueue WorkQueue, live Queue) []Problem {
	at := Path{"work_queues", MapKey(name)}
	switch {
	case live.Type == "stream":
		return []Problem{problem(at, "Streams cannot be retried",
			"Queue %q is a stream, whose consumers cannot reject messages. Remove it from work_queues.", name)}
	case live.Exclusive:
		return []Problem{problem(at, "Exclusive work queue",
			"Queue %q is exclusive: it belongs to one connection, and nobody else can bind it. Remove it from work_queues.", name)}
	case live.AutoDelete:
		return []Problem{problem(at, "Auto-delete work queue",
			"Queue %q deletes itself with its last consumer, and retried messages with it. Make it a lasting queue, or remove it from work_queues.", name)}
	case live.Type != workQueue.Type:
		return []Problem{problem(append(at, "type"), "Work queue has another type",
			"Queue %q is a %s queue, but its type is configured as %q. A policy made for another type does not apply, and rejected messages would be dropped. Write:\n\n  %q = { type = %q }",
			name, live.Type, workQueue.Type, name, live.Type)}
	}
	return checkLiveArguments(at, n, name, live)
}

// checkLiveArguments finds dead-letter arguments of a queue's own, which beat those of a policy.
func checkLiveArguments(at Path, n Names, name string, live Queue) []Problem {
	for key, ours := range map[string]string{"x-dead-letter-exchange": n.DeadLetterExchange(), "x-dead-letter-strategy": "at-least-once"} {
		if value, has := live.Arguments[key]; has && value != ours {
			return []Problem{problem(at, "Work queue has dead-letter arguments of its own",
				"Queue %q was declared with %s = %q. Arguments beat policies, so rejected messages would never reach the pipeline. "+
					"Declare the queue without it (which needs a new queue), or with %q, or remove it from work_queues.", name, key, valueText(value), ours)}
		}
	}
	return nil
}

// Disowned returns the live objects without the work queues that the change from prior to next
// gives up instead of deleting: those that are attached still but not declared any more, and those
// that somebody else made anew, which do not carry the pipeline's mark. Next is nil for a destroy.
func Disowned(live Topology, prior Pipeline, next *Pipeline) Topology {
	kept := live
	kept.Queues = maps.Clone(live.Queues)
	for name, before := range prior.WorkQueues {
		if !before.Declare {
			continue
		}
		attached, declared := false, false
		if next != nil {
			after, stays := next.WorkQueues[name]
			attached, declared = stays, after.Declare
		}
		foreign := kept.Queues[name].Arguments[DeclaredByArgument] != prior.Name
		if !declared && (attached || foreign) {
			delete(kept.Queues, name)
		}
	}
	return kept
}
