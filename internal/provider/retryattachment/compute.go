package retryattachment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// compute sets the computed attributes, which are a function of the configuration alone.
func compute(_ context.Context, plan, prior *model) (known bool, diags diag.Diagnostics) {
	plan.ID = plan.id()
	diags = checkReplacement(*plan, prior)
	if !plan.inputsKnown() {
		plan.Topology = types.ObjectUnknown(attribute.TopologyType)
		if plan.TakeOverFrom.IsUnknown() {
			diags.Append(unknownTakeOver())
		}
		return false, diags
	}
	a, more := plan.attachment()
	if diags.Append(more...); !diags.HasError() {
		plan.Topology = attribute.TopologyValue(pipeline.ExpandAttachment(a))
	}
	return true, diags
}

// checkReplacement refuses a change that might replace the attachment: in between, no pipeline has the queue.
func checkReplacement(plan model, prior *model) diag.Diagnostics {
	var diags diag.Diagnostics
	if prior == nil {
		return nil
	}
	for i, value := range plan.identity() {
		if value.IsUnknown() {
			diags.Append(replacedUnknown([]string{"vhost", "pipeline", "queue"}[i], prior.Queue.ValueString()))
		}
	}
	return diags
}

// refresh sets the computed attributes from what is on the broker.
func refresh(_ context.Context, _ *session.Session, state *model, _ pipeline.Attachment, owned topology.Topology) diag.Diagnostics {
	state.ID, state.Topology = state.id(), attribute.TopologyValue(owned)
	return nil
}
