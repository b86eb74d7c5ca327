package retryattachment

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// warn returns warnings that do not depend on the broker. It warns of a replacement that moves a queue to another pipeline,
// since the queue has no pipeline in between.
func warn(a pipeline.Attachment, prior *pipeline.Attachment) diag.Diagnostics {
	diags := report.Warnings(preflight.WarnOfPolicyKeys(a.WorkQueue.PolicyDefinition, "policy_definition_json"))
	if prior != nil && prior.SameQueue(a) && prior.Pipeline != a.Pipeline {
		diags.AddAttributeError(path.Root("pipeline"), "The queue would be detached before it is attached again", fmt.Sprintf(
			"A change of pipeline replaces the attachment, and messages that are rejected in queue %q in between are lost. "+
				"Keep this attachment as it is. Add a second one, or a work queue of the other pipeline, with take_over_from = %q, and apply. "+
				"Then remove this one and apply again. The guide \"Changing, moving, importing, destroying\" has the steps.",
			a.Queue, prior.Pipeline))
	}
	return diags
}

// checkPlan compares the plan with the broker.
func checkPlan(
	run *configured.Provider, a pipeline.Attachment, prior *pipeline.Attachment, vhost topology.Vhost, _ bool, over attribute.Inputs,
) diag.Diagnostics {
	if len(over) > 0 {
		prior = nil
	}
	found := preflight.CheckLiveAttachment(a, prior, vhost)
	// The same plan creates the pipeline, or restores its definition.
	if run.HasPlanned(configured.Key{Kind: configured.Pipeline, Vhost: a.Vhost, Name: a.Pipeline}) {
		found = slices.DeleteFunc(found, func(f preflight.Finding) bool {
			return f.Cause == preflight.NoPipeline || f.Cause == preflight.Unreadable
		})
	}
	return append(report.Planned(found, false), claimFailedQueue(run, a)...)
}

// claimFailedQueue refuses a failed queue that another attachment of the same plan declares with another type.
func claimFailedQueue(run *configured.Provider, a pipeline.Attachment) diag.Diagnostics {
	if !a.WorkQueue.DeclaresFailedQueue() {
		return nil
	}
	name := a.WorkQueue.FailedQueue
	queue, kind := fmt.Sprintf("failed queue %q in %q", name, a.Vhost), a.Expand().Queues[name].Type
	first, firstKind := run.Claims(queue, a.Queue), run.Claims("type of "+queue, kind)
	if firstKind == kind {
		return nil
	}
	return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root("failed_queue"), "Failed queue is declared twice", fmt.Sprintf(
		"The attachment of queue %q declares the failed queue %q as a %s queue, and the attachment of queue %q declares it as a %s queue. "+
			"Name different failed queues, or declare the queue once and write declare = false in the other attachment.",
		first, name, firstKind, a.Queue, kind))}
}

// InService is the queue, if it is attached.
func (m model) InService(vhost topology.Topology) []string {
	if queue := m.Queue.ValueString(); slices.Contains(pipeline.Attached(pipeline.Names(m.Pipeline.ValueString()), vhost), queue) {
		return []string{queue}
	}
	return nil
}

// inputs are the attributes that the objects depend on.
var inputs = sync.OnceValue(func() attribute.Inputs {
	return attribute.InputsOf(attachmentSchema(context.Background()), "timeouts")
})

// Compute sets the computed attributes, which depend only on the configuration.
func (m *model) Compute(ctx context.Context, prior *model) (known bool, diags diag.Diagnostics) {
	m.ID = entity.ID(m.Identity())
	if prior != nil { // a replacement would leave the queue without a pipeline in between
		for _, name := range kind().Replacing().Unknown(ctx, *m) {
			diags.AddAttributeError(path.Root(name), "The attachment might be replaced", fmt.Sprintf(
				"The value of %s is not known before the apply. If it changes, the attachment is replaced, "+
					"and messages that are rejected in queue %q in between are lost. "+
					"Write the value out, or first create the resource that it comes from, with terraform apply -target.",
				name, prior.Queue.ValueString()))
		}
	}
	if len(inputs().Unknown(ctx, *m)) > 0 {
		if m.TakeOverFrom.IsUnknown() {
			diags.AddAttributeError(path.Root("take_over_from"), "take_over_from is not known yet",
				"take_over_from must be known when the plan is made: write the pipeline's name out.")
		}
		return false, diags
	}
	a, more := m.Specification(ctx)
	if diags.Append(more...); !diags.HasError() {
		m.Topology = attribute.TopologyValue(a.Expand())
	}
	return true, diags
}

// Refresh sets the computed attributes from the owned objects.
func (m *model) Refresh(_ context.Context, _ *configured.Provider, _ pipeline.Attachment, owned topology.Topology) diag.Diagnostics {
	m.ID, m.Topology = entity.ID(m.Identity()), attribute.TopologyValue(owned)
	return nil
}
