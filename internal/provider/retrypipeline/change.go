package retrypipeline

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

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
