package preflight

import (
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckLiveAttachment compares an attachment with a live vhost. Prior is the earlier attachment. If the attachment is
// new, prior is nil.
func CheckLiveAttachment(a pipeline.Attachment, prior *pipeline.Attachment, vhost topology.Vhost) Findings {
	var f Findings
	n := a.Names()
	f.checkPipelineOf(a, vhost)
	p, before := a.AsPipeline(), (*pipeline.Pipeline)(nil)
	if prior != nil {
		was := prior.AsPipeline()
		before = &was
	}
	all := newLiveVhost(n, vhost)
	all.parked = pipeline.ParkedExcept(func(topology.Binding) bool { return false }, vhost.Topology)
	q := newLiveWorkQueue(p, before, a.Queue, all)
	q.attachment = true
	if !q.exists {
		f.missingWorkQueue(q.at(), a.Queue)
	}
	if slices.ContainsFunc(vhost.Bindings, func(b topology.Binding) bool { return n.Returns(b) && b.Destination == a.Queue }) {
		q.warnOfTwo(&f, "Queue %q is also one of the work_queues of the pipeline %q.", a.Queue, a.Pipeline)
		theirs, exists := pipeline.PolicyOf(n, a.Queue, vhost.Topology)
		q.checkHandOver(&f, theirs, exists, "the pipeline")
	}
	q.check(&f)
	wanted := a.Expand()
	checkFailedQueuesExist(&f, q.at(), p, before, wanted.Queues, vhost.Queues)
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
			problem(Path{"pipeline"}, "Pipeline does not exist", "The vhost has no retry pipeline of this name."), NoPipeline, endings[NoPipeline],
			nothingChanged + " Make the pipeline first. If one configuration has both, refer to it: " +
				"pipeline = rabbitmq_retry_pipeline.orders.name.",
		})
	}
	checkRelease(f, a.AsPipeline(), vhost)
	definitions, err := a.Names().DefinitionPlace().All(vhost.Topology)
	if err != nil {
		f.add(Unreadable, Path{"pipeline"}, "The pipeline's engine is not known", unreadableEngine, a.Pipeline, err)
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
	if v.BeforePatch(engine.Since.Major, engine.Since.Minor, engine.Since.Patch) {
		f.refuse(Path{"engine"}, "RabbitMQ is too old for this engine", "The broker is RabbitMQ %d.%d.%d. %s "+
			"Write engine = \"worker\", which needs 3.10, or upgrade first.", v.Major, v.Minor, v.Patch, engine.Before)
	}
}

const (
	unreadableEngine = "The engine of the pipeline %q is in its definition on the broker, which cannot be read: %s.\n\n" +
		"If a newer release has written the definition, upgrade. Otherwise run terraform apply where the pipeline is, " +
		"which restores the definition. If one configuration has both, refer to it: pipeline = rabbitmq_retry_pipeline.orders.name."
)
