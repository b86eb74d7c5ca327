package attribute

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// What a destroy does.
const (
	OnDestroyDelete = "delete"
	OnDestroyRetain = "retain"
)

// DestroyAttributes describe what a destroy does. The text is what messages call the resource.
func DestroyAttributes(kind string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"force_destroy": schema.BoolAttribute{
			Optional: true, Computed: true,
			Default: booldefault.StaticBool(false),
			MarkdownDescription: "Whether a destroy deletes the " + kind + "'s queues with the messages in them. " +
				"Default: `false`, which refuses to. " +
				"It has to be applied before the destroy.",
		},
		"on_destroy": schema.StringAttribute{
			Optional: true, Computed: true,
			Default: stringdefault.StaticString(OnDestroyDelete),
			MarkdownDescription: "What a destroy does: `delete` (default), or `retain`, which leaves everything on the broker and forgets it. " +
				"It has to be applied before the destroy.",
		},
	}
}

// CheckOnDestroy checks what a destroy does, if it is known.
func CheckOnDestroy(chosen types.String) diag.Diagnostics {
	if !Known(chosen) || chosen.ValueString() == OnDestroyDelete || chosen.ValueString() == OnDestroyRetain {
		return nil
	}
	return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root("on_destroy"), "Unknown value of on_destroy",
		fmt.Sprintf("%q is neither \"delete\" nor \"retain\".", chosen.ValueString()))}
}
