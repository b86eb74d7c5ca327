package attribute

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// Timeouts is [timeouts.Attributes] with a check that refuses negative durations, too.
func Timeouts(ctx context.Context, options timeouts.Opts) schema.Attribute {
	nested, is := timeouts.Attributes(ctx, options).(schema.SingleNestedAttribute)
	if !is {
		panic("timeouts are a nested attribute")
	}
	for name, element := range nested.Attributes {
		if text, is := element.(schema.StringAttribute); is {
			text.Validators = []validator.String{timeout{}}
			nested.Attributes[name] = text
		}
	}
	return nested
}

// timeout checks a time to wait.
type timeout struct{}

var _ validator.String = timeout{}

// Description says what is accepted.
func (timeout) Description(context.Context) string {
	return `must be a duration such as "10m" or "1h30m"`
}

// MarkdownDescription says what is accepted.
func (t timeout) MarkdownDescription(ctx context.Context) string { return t.Description(ctx) }

// ValidateString refuses what is no time to wait.
func (t timeout) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !Known(req.ConfigValue) {
		return
	}
	written := req.ConfigValue.ValueString()
	if wait, err := time.ParseDuration(written); err != nil || wait < 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid timeout", fmt.Sprintf("%s is %q. It %s.", req.Path, written, t.Description(ctx)))
	}
}
