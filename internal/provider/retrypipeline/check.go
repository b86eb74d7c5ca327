package retrypipeline

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

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
	problems = append(problems, preflight.CheckLengths(p)...)
	problems = append(problems, preflight.CheckDefinition(p)...)
	problems = append(problems, preflight.CheckPolicies(p)...)
	for name, workQueue := range p.WorkQueues {
		problems = append(problems, preflight.CheckWorkQueue(p.Names(), name, workQueue)...)
	}
	return problems
}

// checkRun finds a work queue that another pipeline of this configuration has, and what the plan should say
// without an error.
func checkRun(run *session.Session, p pipeline.Pipeline, prior *pipeline.Pipeline) diag.Diagnostics {
	diags := report.Warnings(append(preflight.WarnOfMaxAge(p), preflight.WarnOfPipelineKeys(p)...))
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		key := session.Key{Kind: session.Queue, Vhost: p.Vhost, Name: name}
		if other := run.Claim(key, p.Name); other != "" {
			diags.Append(queueOfTwoPipelines(name, other))
		}
	}
	if prior != nil {
		diags.Append(warnOfReleased(p, *prior)...)
	}
	return diags
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
func checkPlan(run *session.Session, p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost) diag.Diagnostics {
	found := preflight.CheckLive(p, prior, vhost, run.Removed(session.Pipeline, p.Vhost)...)
	diags := report.Planned(found, places)
	if len(found.Problems)+len(found.Exists)+len(found.Declared) == 0 {
		diags.Append(auditPlan(p, prior, vhost)...)
	}
	return diags
}

// auditPlan follows the messages of the pipeline through the vhost as it is planned. What it finds lies with
// objects of others, or with what was chosen knowingly, so it warns and does not refuse.
func auditPlan(p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost) diag.Diagnostics {
	var diags diag.Diagnostics
	workQueues := slices.Sorted(maps.Keys(p.WorkQueues))
	for _, f := range audit.Pipeline(pipeline.AfterApply(p, prior, vhost), p.Names(), workQueues) {
		diags.Append(auditFinding(f))
	}
	return diags
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
		return noteGarbled(garbled[0])
	}
	return nil
}
