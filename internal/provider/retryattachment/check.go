package retryattachment

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// checkRun finds a queue that a pipeline of this configuration has, or another pipeline's attachment. A queue does not
// leave its pipeline by a replacement: whichever Terraform does first, destroy or create, nobody has it for a while.
func checkRun(run *session.Session, a pipeline.Attachment, prior *pipeline.Attachment) diag.Diagnostics {
	warnings := preflight.WarnOfPolicyKeys(a.WorkQueue.PolicyDefinition, "policy_definition")
	if prior == nil || !sameQueue(*prior, a) {
		warnings = append(warnings, preflight.CallOf(a.AsPipeline(), preflight.Path{"queue"}))
	}
	diags := report.Warnings(warnings)
	had := prior != nil && sameQueue(*prior, a) && prior.Pipeline == a.Pipeline
	claim := session.Claim{Owner: a.Pipeline, From: a.WorkQueue.TakeOverFrom, Had: had}
	if other, conflicts := run.Claim(queueKey(a), claim); conflicts {
		diags.Append(report.QueueOfTwo(path.Root("queue"), a.Queue, claim, other))
	}
	giver := session.Key{Kind: session.Pipeline, Vhost: a.Vhost, Name: claim.From}
	if claim.From != "" && !had && run.LetsGo(queueKey(a), claim.From) && !run.IsRemoved(giver) {
		diags.Append(takenOverWhileLetGo(a.Queue, claim.From))
	}
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
	found := preflight.CheckLiveAttachment(a, prior, vhost, run.Removed(session.Pipeline, a.Vhost)...)
	found.MissingPipeline = found.MissingPipeline && !run.Plans(session.Key{Kind: session.Pipeline, Vhost: a.Vhost, Name: a.Pipeline})
	diags := report.Planned(found, places, false)
	if prior != nil {
		diags.Append(report.FailedQueuesStay(pipeline.StayingFailedQueueOf(*prior, &a, vhost.Topology))...)
	}
	return diags
}

// letsGo notes that a destroy detaches the queue, and says so if its rejected messages are dropped from then on.
func letsGo(run *session.Session, prior pipeline.Attachment, vhost topology.Vhost) diag.Diagnostics {
	var diags diag.Diagnostics
	if taker := run.LetGo(queueKey(prior), prior.Pipeline); taker != "" {
		diags.Append(letGoWhileTakenOver(prior.Queue, taker))
	}
	if dropped := entity.DroppedDeadLetters(run, change(&prior, nil, vhost), []string{prior.Queue}); len(dropped) > 0 {
		diags.Append(report.DeadLettersDropped(dropped))
	}
	return append(diags, report.FailedQueuesStay(pipeline.StayingFailedQueueOf(prior, nil, vhost.Topology))...)
}

func checkLive(a pipeline.Attachment, prior *pipeline.Attachment, vhost topology.Vhost) preflight.Findings {
	return preflight.CheckLiveAttachment(a, prior, vhost)
}

func queueKey(a pipeline.Attachment) session.Key {
	return session.Key{Kind: session.Queue, Vhost: a.Vhost, Name: a.Queue}
}

func sameQueue(a, b pipeline.Attachment) bool { return a.Queue == b.Queue && a.Vhost == b.Vhost }
