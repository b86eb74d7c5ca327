package retrypipeline

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// defaultAttempts plans one attempt more than there are delays where max_attempts is not set.
type defaultAttempts struct{}

// Description says what is planned.
func (defaultAttempts) Description(context.Context) string { return "One more than there are delays." }

// MarkdownDescription says what is planned.
func (d defaultAttempts) MarkdownDescription(ctx context.Context) string { return d.Description(ctx) }

// PlanModifyInt64 counts the planned delays.
func (defaultAttempts) PlanModifyInt64(ctx context.Context, req planmodifier.Int64Request, resp *planmodifier.Int64Response) {
	if !req.ConfigValue.IsNull() {
		return
	}
	var delays types.List
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("delays"), &delays)...)
	if delays.IsUnknown() {
		resp.PlanValue = types.Int64Unknown()
		return
	}
	resp.PlanValue = types.Int64Value(int64(len(delays.Elements())) + 1)
}
