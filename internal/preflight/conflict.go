package preflight

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Findings are what a live vhost has to say to a pipeline that is about to be made or changed.
type Findings struct {
	// Problems cannot be solved by anything that the same apply may do before.
	Problems []Problem
	// Owned are problems with other pipelines that have a work queue. What destroys those before solves them.
	Owned []Problem
	// Warnings are what may cost messages, or what somebody should know.
	Warnings []Problem
	// Exists lists objects that are to be created but exist already.
	Exists []string
	// Declared lists work queues that are to be declared but exist already, as what to write in place.
	Declared []string
	// NotImportable says why what exists cannot be imported, empty if it can.
	NotImportable string
	// Missing lists work queues that are not there.
	Missing []string
	// FailedQueues lists failed queues of work queues that are to be declared but exist already, and MissingFailedQueues those
	// that are somebody else's and are not there.
	FailedQueues, MissingFailedQueues []string
	// MissingPipeline means that the pipeline to attach to is not there.
	MissingPipeline bool
	// Unreadable is a problem with the definition of that pipeline, which an apply of the pipeline solves.
	Unreadable []Problem
}

// CheckLive compares a pipeline with a live vhost. Prior is the pipeline as it was, nil if it is
// new; what it owned may exist.
func CheckLive(p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost) Findings {
	var f Findings
	all := newLiveVhost(p.Names(), vhost)
	checkRelease(&f, p.Engine, vhost)
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		q := newLiveWorkQueue(p, prior, name, all)
		if !q.exists && !q.Declare {
			f.Missing = append(f.Missing, name)
		}
		q.check(&f)
	}
	f.FailedQueues = existingFailedQueues(p, prior, p.Expand().Queues, vhost.Queues)
	own := ownerOf(p, all)
	checkOwnQueues(&f, own)
	checkCoveredQueues(&f, own, vhost)
	checkAlternateExchanges(&f, own, vhost)
	checkListeners(&f, p, vhost)
	checkNotes(&f, own.kind, p.Names().Notes().Garbled(vhost.Topology, p.Names().OwnsExchange))
	if _, err := pipeline.Definitions(p.Names(), vhost.Topology); err != nil && prior != nil {
		f.warn(Path{"name"}, "Damaged definition", damagedDefinition, err)
	}
	checkCluster(&f, p, vhost)
	checkExisting(&f, p, prior, vhost.Topology)
	return f
}

// checkExisting finds what is to be created and exists already.
func checkExisting(f *Findings, p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Topology) {
	f.Exists, f.Declared = existing(p, prior, vhost), existingWorkQueues(p, prior, vhost)
	if prior == nil && len(f.Exists) > 0 {
		_, notImportable := pipeline.Recover(p.Name, p.Vhost, vhost)
		f.explainExisting("pipeline", p.InterruptedCreation(vhost), notImportable)
	}
}

// explainExisting says how objects come to be there. What an interrupted creation left is either taken over or can be imported.
func (f *Findings) explainExisting(kind string, interrupted bool, notImportable error) {
	switch {
	case interrupted:
		f.warn(Path{"name"}, "Objects of an interrupted creation", interruptedCreation, kind, Bullets(f.Exists))
		f.Exists = nil
	case notImportable != nil:
		f.NotImportable = notImportable.Error()
	}
}

func (f *Findings) refuse(at Path, summary, detail string, args ...any) {
	f.Problems = append(f.Problems, problem(at, summary, detail, args...))
}

func (f *Findings) owned(at Path, summary, detail string, args ...any) {
	f.Owned = append(f.Owned, problem(at, summary, detail, args...))
}

func (f *Findings) warn(at Path, summary, detail string, args ...any) {
	f.Warnings = append(f.Warnings, problem(at, summary, detail, args...))
}

func existing(p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Topology) []string {
	var found []string
	wanted := p.Expand()
	if prior == nil {
		found = appendCommon(found, "exchange", wanted.Exchanges, vhost.Exchanges)
		// Every policy of such a name would be taken for the pipeline's from then on.
		found = appendCommon(found, "policy", p.Owned(vhost).Policies, vhost.Policies)
		failed := p.FailedQueues() // which have findings of their own
		maps.DeleteFunc(wanted.Queues, func(name string, _ topology.Queue) bool {
			_, parks := failed[name]
			return parks || p.WorkQueues[name].Declare
		})
		return appendCommon(found, "queue", wanted.Queues, vhost.Queues)
	}
	known := prior.Expand().Queues
	for _, name := range slices.Sorted(maps.Keys(wanted.Queues)) {
		live, exists := vhost.Queues[name]
		_, had := known[name]
		if exists && !had && p.Names().OwnsQueue(name) && !p.Names().IsRetryQueue(name, live) {
			found = append(found, fmt.Sprintf("queue %q", name))
		}
	}
	return found
}

// existingWorkQueues finds work queues that are to be declared for the first time and exist already, but for those that the
// pipeline declared before, exactly as it would now: their mark is one of their arguments. A creation that was interrupted
// leaves them without a return binding, by which an import would find them.
func existingWorkQueues(p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Topology) []string {
	wanted := p.Expand().Queues
	var found []string
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		w := p.WorkQueues[name]
		live, exists := vhost.Queues[name]
		isNew := w.Declare && (prior == nil || !prior.WorkQueues[name].Declare)
		if exists && isNew && !sameQueue(name, wanted[name], live) {
			w.Declare, w.Arguments = false, nil
			found = append(found, writeWorkQueue(name, withType(w, live.Type)))
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
