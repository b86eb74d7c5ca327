package retrypipeline

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// checkReplacement refuses to replace a pipeline with work queues. Whether Terraform first destroys or first creates,
// rejected messages are lost for a while.
func checkReplacement(plan, prior *model) diag.Diagnostics {
	var diags diag.Diagnostics
	if prior == nil {
		return nil
	}
	queues := slices.Sorted(maps.Keys(prior.WorkQueues.Elements()))
	force := prior.ForceDestroy.ValueBool() && plan.ForceDestroy.ValueBool()
	for _, a := range []struct {
		at        path.Path
		now, then attr.Value
	}{
		{path.Root("name"), prior.Name, plan.Name},
		{path.Root("vhost"), prior.Vhost, plan.Vhost},
		{path.Root("queue_type"), prior.QueueType, plan.QueueType},
		{path.Root("engine"), prior.Engine, plan.Engine},
	} {
		switch refused := len(queues) > 0 && !force; {
		case a.now.Equal(a.then):
		case a.then.IsUnknown() && refused:
			diags.Append(replacedUnknown(a.at, queues))
		case a.then.IsUnknown():
		case refused:
			diags.Append(replacedWithWorkQueues(a.at, queues))
		default:
			diags.Append(replaced(a.at, prior.Name.ValueString(), force && len(queues) > 0))
		}
	}
	return diags
}
