package preflight

import (
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckLiveAttachment compares an attachment with a live vhost. Prior is the attachment as it was,
// nil if it is new.
func CheckLiveAttachment(a pipeline.Attachment, prior *pipeline.Attachment, vhost topology.Vhost) Findings {
	var f Findings
	n := a.Names()
	f.MissingPipeline = !slices.Contains(pipeline.Pipelines(vhost.Topology), a.Pipeline)
	f.checkEngineOf(a, vhost)
	p, before := a.AsPipeline(), (*pipeline.Pipeline)(nil)
	if prior != nil {
		was := prior.AsPipeline()
		before = &was
	}
	all := newLiveVhost(n, vhost)
	all.parked = pipeline.ParkedBy(vhost.Topology)
	q := newLiveWorkQueue(p, before, a.Queue, all)
	q.attachment = true
	if !q.exists {
		f.Missing = append(f.Missing, a.Queue)
	}
	if slices.ContainsFunc(vhost.Bindings, func(b topology.Binding) bool { return n.Returns(b) && b.Destination == a.Queue }) {
		q.warnOfTwo(&f, attachedByPipelineToo, a.Queue, a.Pipeline)
		theirs, exists := pipeline.PolicyOf(n, a.Queue, vhost.Topology)
		q.checkHandOver(&f, theirs, exists, "the pipeline")
	}
	q.check(&f)
	wanted := a.Expand()
	f.FailedQueues = existingFailedQueues(p, before, wanted.Queues, vhost.Queues)
	if prior == nil {
		f.Exists = appendCommon(nil, "policy", wanted.Policies, vhost.Policies)
		if slices.Contains(all.attached, a.Queue) {
			f.Exists = append(f.Exists, fmt.Sprintf("binding %q", pipeline.AttachmentBinding(n, a.Queue)))
		}
	}
	return f
}

// checkEngineOf finds a pipeline of another engine than the attachment's, or of one that nobody can tell. What is attached
// dead-letters elsewhere then.
func (f *Findings) checkEngineOf(a pipeline.Attachment, vhost topology.Vhost) {
	checkRelease(f, a.Engine, vhost)
	definitions, err := pipeline.Definitions(a.Names(), vhost.Topology)
	if err != nil {
		f.Unreadable = []Problem{problem(Path{"pipeline"}, "The pipeline's engine is not known", unreadableEngine, a.Pipeline, err)}
	}
	for _, d := range definitions {
		switch engine := (pipeline.Pipeline{Engine: d.Engine}).EngineName(); engine {
		case a.AsPipeline().EngineName():
		case pipeline.EngineNative:
			f.refuse(Path{"pipeline"}, "Queue cannot be attached from outside", nativeAttachment)
		default:
			f.refuse(Path{"engine"}, "Pipeline of another engine", engineOfPipeline, a.Pipeline, engine)
		}
	}
}

// checkRelease finds an engine that the broker is too old for.
func checkRelease(f *Findings, engine string, vhost topology.Vhost) {
	v := vhost.Version
	release := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	switch {
	case engine == pipeline.EngineNative && v.BeforePatch(4, 3, 1):
		f.refuse(Path{"engine"}, "RabbitMQ is too old for this engine", tooOldForNative, release)
	case engine == pipeline.EngineConsumer && v.Before(4, 0):
		f.refuse(Path{"engine"}, "RabbitMQ is too old for this engine", tooOldForConsumer, release)
	}
}
