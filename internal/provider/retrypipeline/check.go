package retrypipeline

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// checkSpecification checks what several attributes say together.
func checkSpecification(p pipeline.Pipeline) []problem.Problem {
	problems := workerconfig.CheckAttempts(int64(p.MaxAttempts))
	problems = append(problems, preflight.CheckSchedule(p.MaxAttempts, len(p.Delays), p.WorkQueues)...)
	problems = append(problems, preflight.CheckEngine(p)...)
	problems = append(problems, preflight.CheckLengths(p)...)
	problems = append(problems, preflight.CheckDefinition(p)...)
	problems = append(problems, preflight.CheckPolicies(p)...)
	problems = append(problems, preflight.CheckFailedQueues(p)...)
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		problems = append(problems, preflight.CheckWorkQueue(p.Names(), name, p.WorkQueues[name])...)
	}
	return problems
}

// checkRun says what a plan is worth a warning for, whatever the broker has.
func checkRun(run *configured.Provider, p pipeline.Pipeline, prior *pipeline.Pipeline) diag.Diagnostics {
	diags := report.Warnings(slices.Concat(preflight.WarnOfMaxAge(p), preflight.WarnOfPipelineKeys(p)))
	if (prior == nil || prior.EngineName() != p.EngineName()) && !run.Told(p.EngineName()) {
		diags.Append(report.Warnings([]problem.Problem{preflight.ConsumersCall(p.EngineName())})...)
	}
	if prior != nil {
		diags.Append(warnOfReleased(p, *prior)...)
	}
	return diags
}

// warnOfReleased says that a queue that is not declared any more is not deleted.
func warnOfReleased(p, prior pipeline.Pipeline) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, name := range slices.Sorted(maps.Keys(prior.WorkQueues)) {
		if after, stays := p.WorkQueues[name]; stays && prior.WorkQueues[name].Declare && !after.Declare {
			diags.Append(noLongerManaged(name))
		}
	}
	return diags
}

// checkPlan compares the plan with the broker.
func checkPlan(
	run *configured.Provider, p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost, lifecycle entity.Lifecycle,
) diag.Diagnostics {
	found := preflight.CheckLive(p, prior, vhost)
	// Where a forced replacement creates first, apply plans the creation once more, beside the old pipeline. An error of
	// that plan would leave the old one in the state as a deposed object; one of Create puts it back.
	diags := report.Planned(found, places, prior == nil && lifecycle.Force)
	if prior != nil && replaces(*prior, p) {
		if attached := pipeline.Attached(prior.Names(), vhost.Topology); len(attached) > 0 {
			diags.Append(replacedWithAttachments(replacedBy(*prior, p), attached))
		}
	}
	if prior != nil && !replaces(*prior, p) {
		diags.Append(warnOfDropped(run, *prior, &p, vhost)...)
		diags.Append(report.FailedQueuesStay(pipeline.StayingFailedQueues(*prior, &p, vhost.Topology))...)
	}
	if len(found.Problems)+len(found.Owned)+len(found.Exists)+len(found.Declared)+len(found.FailedQueues) == 0 {
		diags.Append(auditPlan(p, prior, vhost)...)
	}
	return diags
}

// leaving lists the queues that a change detaches. With a destroy, those go that dead-letter to the pipeline by their own
// arguments, too, whether they are work queues or not.
func leaving(prior pipeline.Pipeline, next *pipeline.Pipeline, vhost topology.Vhost) []string {
	queues := slices.Collect(maps.Keys(prior.WorkQueues))
	if next != nil {
		queues = slices.DeleteFunc(queues, func(name string) bool { _, stays := next.WorkQueues[name]; return stays })
	} else {
		for name, queue := range vhost.Queues {
			exchange, _ := queue.Arguments["x-dead-letter-exchange"].(string)
			if prior.DeadLettersTo(exchange) {
				queues = append(queues, name)
			}
		}
	}
	return topology.Distinct(queues)
}

// auditPlan follows the messages of the pipeline through the vhost as it is planned. What it finds lies with
// objects of others, or with what was chosen knowingly, so it warns and does not refuse.
func auditPlan(p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost) diag.Diagnostics {
	var diags diag.Diagnostics
	workQueues := slices.Sorted(maps.Keys(p.WorkQueues))
	for _, f := range audit.Pipeline(pipeline.AfterApply(p, prior, vhost), p.Names(), workQueues) {
		diags.Append(report.AuditFinding(path.Root("work_queues"), f.Rule, f.Message, f.Remedy))
	}
	return diags
}

// lostByDestroy says what a destroy loses: what is rejected from then on in the work queues, and the care of failed queues that stay.
func lostByDestroy(run *configured.Provider, prior pipeline.Pipeline, vhost topology.Vhost) diag.Diagnostics {
	diags := warnOfDropped(run, prior, nil, vhost)
	return append(diags, report.FailedQueuesStay(pipeline.StayingFailedQueues(prior, nil, vhost.Topology))...)
}

// warnOfDropped names the work queues of which nobody gets what is rejected after the change, nil for a destroy.
func warnOfDropped(run *configured.Provider, prior pipeline.Pipeline, next *pipeline.Pipeline, vhost topology.Vhost) diag.Diagnostics {
	leaving := leaving(prior, next, vhost)
	if len(leaving) == 0 {
		return nil
	}
	dropped := entity.DroppedDeadLetters(run, change(&prior, next, vhost), leaving)
	switch warning := report.DeadLettersDropped(dropped); {
	case len(dropped) == 0:
		return nil
	case next == nil: // there is no configuration to point to
		return diag.Diagnostics{warning}
	default:
		return diag.Diagnostics{diag.WithPath(path.Root("work_queues"), warning)}
	}
}

// inUse keeps a pipeline that queues of other configurations need, or that may owe somebody a binding.
func inUse(p pipeline.Pipeline, vhost topology.Topology) *entity.InUse {
	if attached := pipeline.Attached(p.Names(), vhost); len(attached) > 0 {
		return queuesAttached(p, attached)
	}
	if garbled := p.Names().GarbledNotes(vhost); len(garbled) > 0 {
		return entity.NoteGarbled(configured.Pipeline, garbled[0])
	}
	return nil
}

// inService lists the queues that reject to the pipeline.
func inService(m model, vhost topology.Topology) []string {
	name := m.Name.ValueString()
	queues := pipeline.Attached(pipeline.Names(name), vhost)
	for _, b := range vhost.Bindings {
		if pipeline.AttachedBy(b) == name {
			queues = append(queues, b.Destination)
		}
	}
	return topology.Distinct(queues)
}
