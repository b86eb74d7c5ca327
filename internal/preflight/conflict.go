package preflight

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckLive compares a pipeline with a live vhost. Prior is the earlier pipeline, whose objects can exist. If the
// pipeline is new, prior is nil.
func CheckLive(p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost) Findings {
	var f Findings
	var before pipeline.Pipeline
	if prior != nil {
		before = *prior
	}
	all := newLiveVhost(p.Names(), vhost)
	checkRelease(&f, p, vhost)
	checkMissing(&f, p, vhost)
	checkDeclared(&f, p, before, all)
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		newLiveWorkQueue(p, before, name, all).check(&f)
	}
	checkFailedQueuesExist(&f, Path{"work_queues"}, p, before, p.Expand().Queues, vhost.Topology)
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

// CheckLiveAttachment compares an attachment with a live vhost. Prior is the earlier attachment. If the attachment is
// new, prior is nil.
func CheckLiveAttachment(a pipeline.Attachment, prior *pipeline.Attachment, vhost topology.Vhost) Findings {
	var f Findings
	n := a.Names()
	f.checkPipelineOf(a, vhost)
	p, before := a.AsPipeline(), pipeline.Pipeline{}
	if prior != nil {
		before = prior.AsPipeline()
	}
	all := newLiveVhost(n, vhost)
	all.parked = pipeline.ParkedExcept(func(topology.Binding) bool { return false }, vhost.Topology)
	q := newLiveWorkQueue(p, before, a.Queue, all)
	q.attachment, q.at = true, attachmentPlace
	if !q.exists {
		f.missingWorkQueue(q.at(), a.Queue, vhost)
	}
	if slices.ContainsFunc(vhost.Bindings, func(b topology.Binding) bool { return n.Returns(b) && b.Destination == a.Queue }) {
		q.warnOfTwo(&f, "Queue %q is also one of the work_queues of the pipeline %q.", a.Queue, a.Pipeline)
		theirs, exists := pipeline.PolicyOf(n, a.Queue, vhost.Topology)
		q.checkHandOver(&f, theirs, exists, "the pipeline")
	}
	q.check(&f)
	wanted := a.Expand()
	checkFailedQueuesExist(&f, q.at(), p, before, wanted.Queues, vhost.Topology)
	if prior == nil {
		objects := appendCommon(nil, "policy", wanted.Policies, vhost.Policies)
		if slices.Contains(all.attached, a.Queue) {
			objects = append(objects, fmt.Sprintf("binding %q", pipeline.AttachmentBinding(n, a.Queue)))
		}
		f.exist(q.at(), objects, nil)
	}
	return f.inOrder()
}

// checkPipelineOf finds a pipeline that is missing, unreadable or uses another engine than the attachment. The attached
// queue would then dead-letter elsewhere.
func (f *Findings) checkPipelineOf(a pipeline.Attachment, vhost topology.Vhost) {
	if !slices.Contains(pipeline.Pipelines(vhost.Topology), a.Pipeline) {
		*f = append(*f, Finding{
			problem(Path{"pipeline"}, "Pipeline does not exist", "The vhost has no retry pipeline %q%s.", a.Pipeline,
				similar.Hint(a.Pipeline, slices.Values(pipeline.Pipelines(vhost.Everything())))), NoPipeline, endings[NoPipeline],
			nothingChanged + " Make the pipeline first. If one configuration has both, refer to it: " +
				"pipeline = rabbitmq_retry_pipeline.orders.name.",
		})
	}
	checkRelease(f, a.AsPipeline(), vhost)
	definitions, err := a.Names().DefinitionPlace().All(vhost.Topology)
	if err != nil {
		f.add(Unreadable, Path{"pipeline"}, "The pipeline's engine is not known",
			"The engine of the pipeline %q is in its definition on the broker, which cannot be read: %s.\n\n"+
				"If a newer release has written the definition, upgrade. Otherwise run terraform apply where the pipeline is, "+
				"which restores the definition. If one configuration has both, refer to it: "+
				"pipeline = rabbitmq_retry_pipeline.orders.name.", a.Pipeline, err)
	}
	for _, d := range definitions {
		switch theirs := (pipeline.Pipeline{Engine: d.Engine}); {
		case theirs.EngineName() == a.AsPipeline().EngineName():
		case theirs.Facts().InQueue:
			f.refuse(Path{"pipeline"}, "Queue cannot be attached from outside", nativeAttachment)
		default:
			f.refuse(Path{"engine"}, "Pipeline with another engine",
				"The definition of the pipeline %[1]q on the broker says engine = %[2]q. "+
					"Write engine = %[2]q here, or attach the queue to another pipeline.", a.Pipeline, theirs.EngineName())
		}
	}
}

// checkRelease refuses an engine that the broker's release does not support.
func checkRelease(f *Findings, p pipeline.Pipeline, vhost topology.Vhost) {
	v, engine := vhost.Version, p.Facts()
	needsFlag := engine.Flag != "" && v.Before(4, 0)
	switch {
	case v.BeforePatch(engine.Since.Major, engine.Since.Minor, engine.Since.Patch):
		f.refuse(Path{"engine"}, "RabbitMQ is too old for this engine", "The broker is RabbitMQ %d.%d.%d. %s "+
			"Write engine = \"worker\", which needs 3.10, or upgrade first.", v.Major, v.Minor, v.Patch, engine.Before)
	case needsFlag && vhost.Flags == nil:
		f.warn(Path{"engine"}, "Feature flag is not known", "The engine needs the feature flag %[1]s, and this user cannot see whether it is "+
			"enabled. Without it, no rejected message is retried. rabbitmqctl list_feature_flags shows it, and "+
			"rabbitmqctl enable_feature_flag %[1]s enables it.", engine.Flag)
	case needsFlag && !vhost.Flags[engine.Flag]:
		f.refuse(Path{"engine"}, "Feature flag is not enabled", "The engine needs the feature flag %[1]s. Without it, no rejected message is "+
			"retried. Run rabbitmqctl enable_feature_flag %[1]s, write engine = \"worker\", or upgrade to RabbitMQ 4.", engine.Flag)
	}
}

// checkExisting finds objects that the pipeline would create but that already exist.
func checkExisting(f *Findings, p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Topology) {
	n, wanted := p.Names(), p.Expand()
	if prior != nil {
		known := prior.Expand().Queues
		maps.DeleteFunc(wanted.Queues, func(name string, _ topology.Queue) bool {
			_, had := known[name]
			return had || !n.OwnsQueue(name) || n.IsRetryQueue(name, vhost.Queues[name])
		})
		f.exist(Path{"name"}, appendCommon(nil, "queue", wanted.Queues, vhost.Queues), nil)
		return
	}
	objects := appendCommon(nil, "exchange", wanted.Exchanges, vhost.Exchanges)
	// Any policy with such a name would from now on count as the pipeline's.
	objects = appendCommon(objects, "policy", p.Owned(vhost).Policies, vhost.Policies)
	for _, name := range p.FailedQueues() { // they have their own findings
		delete(wanted.Queues, name)
	}
	maps.DeleteFunc(wanted.Queues, func(name string, _ topology.Queue) bool { return p.WorkQueues[name].Declare })
	objects = appendCommon(objects, "queue", wanted.Queues, vhost.Queues)
	if len(objects) > 0 {
		_, notImportable := pipeline.Recover(p.Name, p.Vhost, vhost)
		f.existForNew("pipeline", objects, p.InterruptedCreation(vhost), notImportable)
	}
}

// checkMissing finds work queues that do not exist.
func checkMissing(f *Findings, p pipeline.Pipeline, vhost topology.Vhost) {
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		if _, exists := vhost.Queues[name]; !exists && !p.WorkQueues[name].Declare {
			f.missingWorkQueue(Path{"work_queues"}, name, vhost)
		}
	}
}

// checkDeclared finds newly declared work queues that already exist. It accepts a queue that this pipeline created with
// the same arguments, including the mark. An interrupted creation leaves such queues without a return binding, so an
// import would not find them.
func checkDeclared(f *Findings, p, before pipeline.Pipeline, vhost liveVhost) {
	wanted := p.Expand().Queues
	declared := Finding{
		problem(Path{"work_queues"}, "Work queues exist already", "With declare = true, the pipeline creates and owns a work queue, "+
			"but these exist already. Leave declare out, so that the pipeline attaches the queue as it is, with its messages:\n"),
		InTheWay, "\n\nApply fails with declare = true.", nothingChanged,
	}
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		w := p.WorkQueues[name]
		live, exists := vhost.Queues[name]
		isNew := w.Declare && !before.WorkQueues[name].Declare
		if exists && isNew && !wanted[name].Equal(live) {
			w.Declare, w.Arguments = false, nil
			f.list(declared, writeWorkQueue(name, withType(w, live.Type)))
			attached, asItIs := newLiveWorkQueue(p, before, name, vhost), Findings{}
			attached.WorkQueue, attached.live = withType(w, live.Type), live
			if attached.checkKind(&asItIs) {
				attached.checkOwnArguments(&asItIs)
			}
			for _, found := range asItIs {
				found.Cause, found.OnlyPlan = InTheWay, "\n\nThis prevents that the pipeline attaches the queue as it is."
				*f = append(*f, found)
			}
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
		f.refuse(Path{"name"}, NewerDefinition,
			ManagedByNewer+" This release would drop the settings that it does not know, so nothing of this resource was changed.", err)
	case err != nil && exists:
		f.warn(Path{"name"}, "Damaged definition", "The definition on the broker differs from the applied one: %s. "+
			"Apply restores it from the configuration, and deletes nothing else.", err)
	}
}

// NewerDefinition is the summary of an error about a definition that this release must not replace or delete.
const NewerDefinition = "Definition of a newer release"

// ManagedByNewer is the beginning of its detail. The error follows.
const ManagedByNewer = "A newer release of the provider manages these objects: %s."
