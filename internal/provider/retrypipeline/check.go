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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
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
	for name, workQueue := range p.WorkQueues {
		problems = append(problems, preflight.CheckWorkQueue(p.Names(), name, workQueue)...)
	}
	return problems
}

// checkRun finds a work queue that another pipeline of this configuration has, and what the plan should say
// without an error.
func checkRun(run *session.Session, p pipeline.Pipeline, prior *pipeline.Pipeline) diag.Diagnostics {
	diags := report.Warnings(slices.Concat(preflight.ConsumersCall(p, prior), preflight.WarnOfMaxAge(p), preflight.WarnOfPipelineKeys(p)))
	own := topology.Topology{Exchanges: pipeline.ExpandExchanges(p), Queues: p.OwnQueues()}
	diags.Append(entity.ClaimObjects(run, pipelineKey(p.Vhost, p.Name), own)...)
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		diags.Append(claim(run, p, prior, name)...)
	}
	if prior != nil {
		diags.Append(warnOfReleased(p, *prior)...)
		diags.Append(letGo(run, *prior, p.WorkQueues)...)
	}
	return diags
}

// claim notes that the pipeline has a queue, and whom it takes it over from.
func claim(run *session.Session, p pipeline.Pipeline, prior *pipeline.Pipeline, name string) diag.Diagnostics {
	var diags diag.Diagnostics
	key, from, had := queueKey(p, name), p.WorkQueues[name].TakeOverFrom, false
	if prior != nil {
		_, had = prior.WorkQueues[name]
	}
	mine := session.Claim{Owner: p.Name, From: from, Had: had}
	if other, conflicts := run.Claim(key, mine); conflicts {
		diags.Append(report.QueueOfTwo(workQueuePath(name), name, mine, other))
	}
	if from != "" && !had && run.LetsGo(key, from) && !run.IsRemoved(pipelineKey(p.Vhost, from)) {
		diags.Append(takenOverWhileLetGo(name, from))
	}
	return diags
}

// letGo notes the queues that the pipeline gives up, all but those that stay. Of one that is removed by force, whoever
// takes a queue over comes first where Terraform creates before it destroys; otherwise loss is what was asked for.
func letGo(run *session.Session, prior pipeline.Pipeline, stay map[string]pipeline.WorkQueue) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, name := range slices.Sorted(maps.Keys(prior.WorkQueues)) {
		if _, stays := stay[name]; stays {
			continue
		}
		if taker := run.LetGo(queueKey(prior, name), prior.Name); taker != "" && !run.IsRemoved(pipelineKey(prior.Vhost, prior.Name)) {
			diags.Append(letGoWhileTakenOver(name, taker))
		}
	}
	return diags
}

func queueKey(p pipeline.Pipeline, queue string) session.Key {
	return session.Key{Kind: session.Queue, Vhost: p.Vhost, Name: queue}
}

func pipelineKey(vhost, name string) session.Key {
	return session.Key{Kind: session.Pipeline, Vhost: vhost, Name: name}
}

// warnOfReleased says that a queue that is not declared any more is not deleted.
func warnOfReleased(p, prior pipeline.Pipeline) diag.Diagnostics {
	var diags diag.Diagnostics
	for name, before := range prior.WorkQueues {
		if after, stays := p.WorkQueues[name]; stays && before.Declare && !after.Declare {
			diags.Append(noLongerManaged(name))
		}
	}
	return diags
}

// checkPlan compares the plan with the broker.
func checkPlan(
	run *session.Session, p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost, lifecycle entity.Lifecycle,
) diag.Diagnostics {
	found := preflight.CheckLive(p, prior, vhost, run.Removed(session.Pipeline, p.Vhost)...)
	// Where a forced replacement creates first, apply plans the creation once more, beside the old pipeline. An error of
	// that plan would leave the old one in the state as a deposed object; one of Create puts it back.
	diags := report.Planned(found, places, prior == nil && lifecycle.Force)
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
	slices.Sort(queues)
	return slices.Compact(queues)
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

// letsGo notes the queues that a destroy detaches, and names those whose rejected messages are dropped from then on.
func letsGo(run *session.Session, prior pipeline.Pipeline, vhost topology.Vhost) diag.Diagnostics {
	diags := letGo(run, prior, nil)
	diags.Append(warnOfDropped(run, prior, nil, vhost)...)
	return append(diags, report.FailedQueuesStay(pipeline.StayingFailedQueues(prior, nil, vhost.Topology))...)
}

// warnOfDropped names the work queues of which nobody gets what is rejected after the change, nil for a destroy.
func warnOfDropped(run *session.Session, prior pipeline.Pipeline, next *pipeline.Pipeline, vhost topology.Vhost) diag.Diagnostics {
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

func checkLive(p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost) preflight.Findings {
	return preflight.CheckLive(p, prior, vhost)
}

// inUse keeps a pipeline that queues of other configurations need, or that may owe somebody a binding.
func inUse(p pipeline.Pipeline, vhost topology.Topology) *entity.InUse {
	if attached := pipeline.Attached(p.Names(), vhost); len(attached) > 0 {
		return queuesAttached(p, attached)
	}
	if garbled := p.Names().GarbledNotes(vhost); len(garbled) > 0 {
		return entity.NoteGarbled(session.Pipeline, garbled[0])
	}
	return nil
}
