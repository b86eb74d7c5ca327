package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
)

// ForceDestroy describes what a destroy deletes. The text is what messages call the resource.
func ForceDestroy(kind string) schema.Attribute {
	return schema.BoolAttribute{
		Optional: true, Computed: true,
		Default: booldefault.StaticBool(false),
		MarkdownDescription: "Whether a destroy deletes the " + kind + "'s queues with the messages in them. " +
			"Default: `false`, which refuses to. " +
			"It has to be applied before the destroy.",
	}
}
