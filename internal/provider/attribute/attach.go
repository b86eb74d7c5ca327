package attribute

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// OneOf accepts only these values.
func OneOf(values ...string) []validator.String {
	return []validator.String{stringvalidator.OneOf(values...)}
}

// PolicyPriority describes the priority of policies.
func PolicyPriority(preset int64, description string) schema.Attribute {
	return schema.Int64Attribute{
		Optional: true, Computed: true,
		Default:    int64default.StaticInt64(preset),
		Validators: []validator.Int64{int64validator.AtLeast(1)}, // 0 is the priority of a policy without a chosen one
		MarkdownDescription: description +
			"A queue gets only the policy of the highest priority. Minimum: `1`. Default: `1000`.",
	}
}

// AttachAttributes describe how a work queue is attached to a pipeline. The text adds the resource's special rule for
// policy_definition_json.
func AttachAttributes(definition string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"type": TextOneOf(topology.Quorum, "The queue's type: `quorum` (default) or `classic`. "+
			"It must be the queue's real type, since a policy for another type does not apply.", topology.Quorum, topology.Classic),
		"attach": TextOneOf(pipeline.AttachPolicy, "How the queue gets its dead-letter exchange: from a `policy` (default), "+
			"or from `arguments` that the application declares and the provider checks.", pipeline.AttachPolicy, pipeline.AttachArguments),
		"take_over_from": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "Name of the pipeline that has the queue and releases it in a later apply. Remove it after that apply.",
		},
		"dead_letter_strategy": schema.StringAttribute{
			Optional:   true,
			Validators: OneOf(topology.AtLeastOnce, topology.AtMostOnce),
			MarkdownDescription: "`at-least-once` (default for quorum queues) needs a queue without a length limit. " +
				"Classic queues support only `at-most-once`.",
		},
		"policy_definition_json": JSON("More keys for the policy of this queue, as JSON. " + definition),
	}
}

// ComputedString describes a text that the provider computes.
func ComputedString(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// ForceDestroy describes the attribute force_destroy.
func ForceDestroy() schema.Attribute {
	return Flag(false, "Whether a destroy deletes queues that have messages. Default: `false`. Apply `true` before the destroy.")
}

var notNegative = regexp.MustCompile("^[^-]")

// Timeouts is [timeouts.Attributes] that also refuses negative durations.
func Timeouts(ctx context.Context, options timeouts.Opts) schema.Attribute {
	nested, is := timeouts.Attributes(ctx, options).(schema.SingleNestedAttribute)
	if !is {
		panic("timeouts are a nested attribute")
	}
	nested.MarkdownDescription = "How long operations wait, as Go durations such as `10m`. Default: no wait."
	for name, element := range nested.Attributes {
		if text, is := element.(schema.StringAttribute); is {
			text.Validators = append(text.Validators, stringvalidator.RegexMatches(notNegative, "must not be negative"))
			nested.Attributes[name] = text
		}
	}
	return nested
}
