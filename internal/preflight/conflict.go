package preflight

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckLive compares a pipeline with a live vhost. Prior is the earlier pipeline, whose objects can exist. If the
// pipeline is new, prior is nil.
func CheckLive(p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost) Findings {
	var f Findings
	all := newLiveVhost(p.Names(), vhost)
	checkRelease(&f, p, vhost)
	checkMissing(&f, p, vhost.Topology)
	checkDeclared(&f, p, prior, vhost.Topology)
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		newLiveWorkQueue(p, prior, name, all).check(&f)
	}
	checkFailedQueuesExist(&f, Path{"work_queues"}, p, prior, p.Expand().Queues, vhost.Queues)
	own := ownerOf(p, all)
	checkOwnQueues(&f, own, vhost)
	checkCoveredQueues(&f, own, vhost)
	checkAlternateExchanges(&f, own, vhost)
	checkListeners(&f, p, vhost)
	checkNotes(&f, own.kind, p.Names().Notes().Garbled(vhost.Topology, p.Names().OwnsExchange))
	checkDefinition(&f, p.Names().DefinitionPlace().CheckReplaceable(vhost.Topology), prior != nil)
	checkCluster(&f, p, vhost)
	checkExisting(&f, p, prior, vhost.Topology)
	return f.inOrder()
}

// checkExisting finds objects that the pipeline would create but that already exist.
func checkExisting(f *Findings, p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Topology) {
	objects := existing(p, prior, vhost)
	if prior != nil || len(objects) == 0 {
		f.exist(Path{"name"}, objects, nil)
		return
	}
	_, notImportable := pipeline.Recover(p.Name, p.Vhost, vhost)
	f.existForNew("pipeline", objects, p.InterruptedCreation(vhost), notImportable)
}

func existing(p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Topology) []string {
	wanted := p.Expand()
	if prior == nil {
		found := appendCommon(nil, "exchange", wanted.Exchanges, vhost.Exchanges)
		// Any policy with such a name would from now on count as the pipeline's.
		found = appendCommon(found, "policy", p.Owned(vhost).Policies, vhost.Policies)
		for _, name := range p.FailedQueues() { // they have their own findings
			delete(wanted.Queues, name)
		}
		maps.DeleteFunc(wanted.Queues, func(name string, _ topology.Queue) bool { return p.WorkQueues[name].Declare })
		return appendCommon(found, "queue", wanted.Queues, vhost.Queues)
	}
	var found []string
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

// checkMissing finds work queues that do not exist.
func checkMissing(f *Findings, p pipeline.Pipeline, vhost topology.Topology) {
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		if _, exists := vhost.Queues[name]; !exists && !p.WorkQueues[name].Declare {
			f.missingWorkQueue(Path{"work_queues"}, name)
		}
	}
}

// checkDeclared finds newly declared work queues that already exist. It accepts a queue that this pipeline created with
// the same arguments, including the mark. An interrupted creation leaves such queues without a return binding, so an
// import would not find them.
func checkDeclared(f *Findings, p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Topology) {
	wanted := p.Expand().Queues
	declared := Finding{
		problem(Path{"work_queues"}, "Work queues exist already", "With declare = true, the pipeline creates and owns a work queue, "+
			"but these exist already. Leave declare out, so that the pipeline attaches the queue as it is, with its messages.\n"),
		InTheWay, "\n\nApply fails with declare = true.", nothingChanged,
	}
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		w := p.WorkQueues[name]
		live, exists := vhost.Queues[name]
		isNew := w.Declare && (prior == nil || !prior.WorkQueues[name].Declare)
		if exists && isNew && !sameQueue(name, wanted[name], live) {
			w.Declare, w.Arguments = false, nil
			f.list(declared, writeWorkQueue(name, withType(w, live.Type)))
		}
	}
}

func appendCommon[W, L any](found []string, kind string, wanted map[string]W, live map[string]L) []string {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if _, exists := live[name]; exists {
			found = append(found, fmt.Sprintf("%s %q", kind, name))
		}
	}
	return found
}

// checkDefinition refuses to replace the definition of a newer release, and warns of a damaged one.
func checkDefinition(f *Findings, err error, exists bool) {
	switch {
	case release.IsNewer(err):
		f.refuse(Path{"name"}, NewerDefinition, newerDefinition, err)
	case err != nil && exists:
		f.warn(Path{"name"}, "Damaged definition", damagedDefinition, err)
	}
}

// NewerDefinition is the summary of an error about a definition that this release must not replace or delete.
const NewerDefinition = "Definition of a newer release"

// ManagedByNewer is the beginning of its detail. The error follows.
const ManagedByNewer = "A newer release of the provider manages these objects: %s."

const (
	newerDefinition   = ManagedByNewer + " This release would drop the settings that it does not know, so nothing was changed."
	damagedDefinition = "The definition on the broker differs from the applied one: %s. " +
		"Apply restores it from the configuration, and deletes nothing else."
)
