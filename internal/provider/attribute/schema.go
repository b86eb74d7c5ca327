package attribute

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Background is the context of conversions between values, which wait for nothing.
var Background = context.Background()

// Flag describes a boolean attribute with a default.
func Flag(byDefault bool, description string) schema.Attribute {
	return schema.BoolAttribute{
		Optional: true, Computed: true, Default: booldefault.StaticBool(byDefault), MarkdownDescription: description,
	}
}

// Name describes the name of an object. Changing it replaces the object.
func Name(of string) schema.Attribute {
	return Text("Name of the " + of + ". Changing it replaces the " + of + ".")
}

// Text describes a required text.
func Text(description string) schema.Attribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: description}
}

// TextOr describes a text with a default.
func TextOr(byDefault, description string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, Computed: true, Default: stringdefault.StaticString(byDefault), MarkdownDescription: description,
	}
}

// ComputedString describes a text that the provider computes.
func ComputedString(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// OneOf accepts only these values.
func OneOf(values ...string) []validator.String {
	return []validator.String{Explained{stringvalidator.OneOf(values...), fmt.Sprintf("write one of these: %q.", values)}}
}

// NotEmpty refuses an empty text.
func NotEmpty(remedy string) []validator.String {
	return []validator.String{Explained{stringvalidator.LengthAtLeast(1), remedy}}
}

// TextOneOf describes a text that is one of several, with a default.
func TextOneOf(byDefault, description string, texts ...string) schema.Attribute {
	text := TextOr(byDefault, description)
	text.Validators = OneOf(texts...)
	return text
}

// JSON describes an optional text in JSON.
func JSON(description string) schema.Attribute {
	return schema.StringAttribute{Optional: true, CustomType: jsontypes.NormalizedType{}, MarkdownDescription: description}
}

// Number describes a number with a default.
func Number(byDefault int64, description string) schema.Int64Attribute {
	return schema.Int64Attribute{
		Optional: true, Computed: true, Default: int64default.StaticInt64(byDefault), MarkdownDescription: description,
	}
}

// PolicyPriority describes the priority of policies.
func PolicyPriority(preset int64, description string) schema.Attribute {
	priority := Number(preset, description+
		"A queue gets only the policy of the highest priority. Minimum: `1`. Default: `1000`.")
	// 0 is the priority of a policy without a chosen one.
	priority.Validators = []validator.Int64{int64validator.AtLeast(1)}
	return priority
}

// Limit describes a limit, null for none.
func Limit(description string) schema.Attribute {
	return schema.Int64Attribute{
		Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)}, MarkdownDescription: description,
	}
}

// Limits are the known limits, by the broker's names.
func Limits(of map[string]types.Int64) map[string]int64 {
	limits := map[string]int64{}
	for limit, value := range of {
		if Known(value) {
			limits[limit] = value.ValueInt64()
		}
	}
	return limits
}

// LimitValue is a limit, null if it is not set.
func LimitValue(limits map[string]int64, limit string) types.Int64 {
	value, isSet := limits[limit]
	if !isSet {
		return types.Int64Null()
	}
	return types.Int64Value(value)
}

// ForceDestroy describes the attribute force_destroy.
func ForceDestroy() schema.Attribute {
	return Flag(false, "Whether a destroy deletes queues that have messages. Default: `false`. Apply `true` before the destroy.")
}

// Timeouts is [timeouts.Attributes] that also refuses negative durations.
func Timeouts(ctx context.Context, options timeouts.Opts) schema.Attribute {
	nested, is := timeouts.Attributes(ctx, options).(schema.SingleNestedAttribute)
	if !is {
		panic("timeouts are a nested attribute")
	}
	notNegative := regexp.MustCompile("^[^-]")
	nested.MarkdownDescription = "How long operations wait, as Go durations such as `10m`. Default: no wait."
	for name, element := range nested.Attributes {
		if text, is := element.(schema.StringAttribute); is {
			all := stringvalidator.All(append(text.Validators, stringvalidator.RegexMatches(notNegative, ""))...)
			text.Validators = []validator.String{Explained{all, `write a duration of 0 or more, such as "10m" or "1h30m".`}}
			nested.Attributes[name] = text
		}
	}
	return nested
}

// Block describes a block that can stand in place of other attributes, as other RabbitMQ providers have it.
func Block(description string, attributes map[string]schema.Attribute, inPlaceOf ...string) schema.Block {
	var others []path.Expression
	for _, name := range inPlaceOf {
		others = append(others, path.MatchRoot(name))
	}
	all := listvalidator.All(listvalidator.SizeAtMost(1), listvalidator.ConflictsWith(others...))
	remedy := fmt.Sprintf("write this block once, or in its place these attributes: %s.", strings.Join(inPlaceOf, ", "))
	return schema.ListNestedBlock{
		MarkdownDescription: description,
		NestedObject:        schema.NestedBlockObject{Attributes: attributes},
		Validators:          []validator.List{Explained{all, remedy}},
	}
}

// RequiredBlock describes a block that must be there once.
func RequiredBlock(description string, attributes map[string]schema.Attribute) schema.Block {
	once := listvalidator.All(listvalidator.IsRequired(), listvalidator.SizeBetween(1, 1))
	return schema.ListNestedBlock{
		MarkdownDescription: description,
		NestedObject:        schema.NestedBlockObject{Attributes: attributes},
		Validators:          []validator.List{Explained{once, "write this block once."}},
	}
}

// BlockOf is the content of a block, nil if the configuration has none.
func BlockOf[T any](block types.List) *T {
	var content []T
	if !Known(block) || block.ElementsAs(Background, &content, false).HasError() || len(content) == 0 {
		return nil
	}
	return &content[0]
}

// SetBlock replaces the content of a block.
func SetBlock[T any](block *types.List, content T) {
	of := block.ElementType(Background)
	*block, _ = types.ListValueFrom(Background, of, []T{content})
}
