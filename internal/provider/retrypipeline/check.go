package retrypipeline

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// checkSpecification checks combinations of attributes.
func checkSpecification(p pipeline.Pipeline) []problem.Problem {
	problems := rules.CheckAttempts(problem.Path{"max_attempts"}, int64(p.MaxAttempts))
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

// warn returns warnings that do not depend on the broker.
func warn(p pipeline.Pipeline, prior *pipeline.Pipeline) diag.Diagnostics {
	diags := report.Warnings(slices.Concat(preflight.WarnOfMaxAge(p), preflight.WarnOfDecreasing(p, prior), preflight.WarnOfPipelineKeys(p)))
	if prior != nil {
		diags.Append(warnOfReleased(p, *prior)...)
	}
	return diags
}

// warnOfReleased warns that a queue is not deleted when the configuration no longer declares it.
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
	run *configured.Provider, p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost, force bool, over attribute.Inputs,
) diag.Diagnostics {
	found := preflight.CheckLive(p, prior, vhost)
	// If a forced replacement creates first, apply plans the creation again while the old pipeline exists. An error of that plan
	// would leave the old pipeline in the state as a deposed object. An error of Create restores it.
	diags := report.Planned(found, prior == nil && force)
	if len(over) > 0 {
		if attached := pipeline.Attached(prior.Names(), vhost.Topology); len(attached) > 0 {
			diags.Append(replacedWithAttachments(path.Root(over[0]), attached))
		}
	}
	if len(found.Of(preflight.Wrong, preflight.Owned, preflight.InTheWay)) == 0 {
		diags.Append(auditPlan(run, p, prior, vhost)...)
	}
	return diags
}

// auditPlan follows the pipeline's messages through the vhost as planned. It only warns, since a finding concerns other
// owners' objects or a deliberate choice.
func auditPlan(run *configured.Provider, p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost) diag.Diagnostics {
	var diags diag.Diagnostics
	workQueues := slices.Sorted(maps.Keys(p.WorkQueues))
	for _, f := range audit.Pipeline(p.AfterApply(prior, vhost), p.Names(), workQueues) {
		if !run.Told(f.Message) { // several pipelines can have the same finding
			diags.Append(report.AuditFinding(path.Root("work_queues"), f.Rule, f.Message, f.Remedy))
		}
	}
	return diags
}

// inUse prevents the destroy of a pipeline that other configurations' queues need, or whose notes cannot be read.
func inUse(p pipeline.Pipeline, vhost topology.Topology) *owner.InUse {
	if attached := pipeline.Attached(p.Names(), vhost); len(attached) > 0 {
		return queuesAttached(p, attached)
	}
	definition := p.Names().DefinitionPlace().CheckReplaceable(vhost)
	return owner.Unreadable(configured.Pipeline, definition, p.Names().Notes().Garbled(vhost, p.Names().OwnsExchange))
}

// InService lists the queues whose rejected messages go to the pipeline.
func (m model) InService(vhost topology.Topology) []string {
	name := m.Name.ValueString()
	queues := pipeline.Attached(pipeline.Names(name), vhost)
	for _, b := range vhost.Bindings {
		if pipeline.AttachedBy(b) == name {
			queues = append(queues, b.Destination)
		}
	}
	return topology.Distinct(queues)
}

// checkReplacement refuses to replace a pipeline with work queues. Whether Terraform first destroys or first creates,
// rejected messages are lost for a while.
func checkReplacement(ctx context.Context, plan, prior *model) diag.Diagnostics {
	var diags diag.Diagnostics
	if prior == nil {
		return nil
	}
	queues := slices.Sorted(maps.Keys(prior.WorkQueues.Elements()))
	force := prior.ForceDestroy.ValueBool() && plan.ForceDestroy.ValueBool()
	refused, unknown := len(queues) > 0 && !force, kind().Replacing().Unknown(ctx, *plan)
	for _, name := range kind().Replacing().Different(*plan, *prior) {
		switch at, known := path.Root(name), !slices.Contains(unknown, name); {
		case refused && known:
			diags.Append(replacedWithWorkQueues(at, queues))
		case refused:
			diags.Append(replacedUnknown(at, queues))
		case known:
			diags.Append(replaced(at, prior.Name.ValueString(), force && len(queues) > 0))
		}
	}
	return diags
}
