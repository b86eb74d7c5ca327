package retryattachment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// compute sets the computed attributes, which are a function of the configuration alone.
func compute(_ context.Context, plan, _ *model) (known bool, diags diag.Diagnostics) {
	plan.ID = plan.id()
	if !plan.inputsKnown() {
		plan.Topology = types.ObjectUnknown(attribute.TopologyType)
		if plan.TakeOverFrom.IsUnknown() {
			diags.Append(unknownTakeOver())
		}
		return false, diags
	}
	a, diags := plan.attachment()
	if !diags.HasError() {
		plan.Topology = attribute.TopologyValue(pipeline.ExpandAttachment(a))
	}
	return true, diags
}

// refresh sets the computed attributes from what is on the broker.
func refresh(_ context.Context, _ *apply.Applier, state *model, _ pipeline.Attachment, owned topology.Topology) diag.Diagnostics {
	state.ID, state.Topology = state.id(), attribute.TopologyValue(owned)
	return nil
}
