package retryattachment

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// checkRun says what a plan is worth a warning for, whatever the broker has. A queue does not leave its pipeline by a
// replacement: in between, no pipeline has it.
func checkRun(run *session.Session, a pipeline.Attachment, prior *pipeline.Attachment) diag.Diagnostics {
	warnings := preflight.WarnOfPolicyKeys(a.WorkQueue.PolicyDefinition, "policy_definition")
	if engine := a.AsPipeline().EngineName(); (prior == nil || !sameQueue(*prior, a)) && !run.Told(engine) {
		warnings = append(warnings, preflight.ConsumersCall(engine))
	}
	diags := report.Warnings(warnings)
	if prior != nil && sameQueue(*prior, a) && prior.Pipeline != a.Pipeline {
		diags.Append(movedByReplacement(a.Queue, prior.Pipeline))
	}
	return diags
}

// checkPlan compares the plan with the broker.
func checkPlan(
	run *session.Session, a pipeline.Attachment, prior *pipeline.Attachment, vhost topology.Vhost, _ entity.Lifecycle,
) diag.Diagnostics {
	if prior != nil && (!sameQueue(*prior, a) || prior.Pipeline != a.Pipeline) {
		prior = nil
	}
	found := preflight.CheckLiveAttachment(a, prior, vhost)
	found.MissingPipeline = found.MissingPipeline && !run.HasPlanned(session.Key{Kind: session.Pipeline, Vhost: a.Vhost, Name: a.Pipeline})
	diags := report.Planned(found, places, false)
	if prior != nil {
		diags.Append(report.FailedQueuesStay(pipeline.StayingFailedQueueOf(*prior, &a, vhost.Topology))...)
	}
	return diags
}

// letsGo says what a destroy loses: what is rejected from then on, and the care of a failed queue that stays.
func letsGo(run *session.Session, prior pipeline.Attachment, vhost topology.Vhost) diag.Diagnostics {
	var diags diag.Diagnostics
	if dropped := entity.DroppedDeadLetters(run, change(&prior, nil, vhost), []string{prior.Queue}); len(dropped) > 0 {
		diags.Append(report.DeadLettersDropped(dropped))
	}
	return append(diags, report.FailedQueuesStay(pipeline.StayingFailedQueueOf(prior, nil, vhost.Topology))...)
}

// released is the queue of an attachment that is destroyed. A change that detaches it is a replacement.
func released(prior pipeline.Attachment, next *pipeline.Attachment, _ topology.Vhost) []string {
	if next == nil {
		return []string{prior.Queue}
	}
	return nil
}

func checkLive(a pipeline.Attachment, prior *pipeline.Attachment, vhost topology.Vhost) preflight.Findings {
	return preflight.CheckLiveAttachment(a, prior, vhost)
}

// inService is the queue, if it is attached.
func inService(m model, vhost topology.Topology) []string {
	if queue := m.Queue.ValueString(); slices.Contains(pipeline.Attached(pipeline.Names(m.Pipeline.ValueString()), vhost), queue) {
		return []string{queue}
	}
	return nil
}

func sameQueue(a, b pipeline.Attachment) bool { return a.Queue == b.Queue && a.Vhost == b.Vhost }
