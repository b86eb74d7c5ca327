package attribute

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

var notNegative = regexp.MustCompile("^[^-]")

// Timeouts is [timeouts.Attributes] with a check that refuses negative durations, too.
func Timeouts(ctx context.Context, options timeouts.Opts) schema.Attribute {
	nested, is := timeouts.Attributes(ctx, options).(schema.SingleNestedAttribute)
	if !is {
		panic("timeouts are a nested attribute")
	}
	for name, element := range nested.Attributes {
		if text, is := element.(schema.StringAttribute); is {
			text.Validators = append(text.Validators, stringvalidator.RegexMatches(notNegative, "must not be negative"))
			nested.Attributes[name] = text
		}
	}
	return nested
}
