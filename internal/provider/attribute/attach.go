package attribute

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
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
			"Only the policy of the highest priority applies to a queue. " +
			"Default: `1000`.",
	}
}

// AttachAttributes describe how a work queue is attached to a pipeline. The two texts add the resource's special rules for
// attach and policy_definition_json.
func AttachAttributes(attach, definition string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"type": schema.StringAttribute{
			Optional: true, Computed: true,
			Default:    stringdefault.StaticString(topology.Quorum),
			Validators: OneOf(topology.Quorum, topology.Classic),
			MarkdownDescription: "The queue's type: `quorum` (default) or `classic`. " +
				"It must be the queue's real type, since a policy for another type does not apply.",
		},
		"attach": schema.StringAttribute{
			Optional: true, Computed: true,
			Default:    stringdefault.StaticString(pipeline.AttachPolicy),
			Validators: OneOf(pipeline.AttachPolicy, pipeline.AttachArguments),
			MarkdownDescription: "How the queue gets its dead-letter exchange. `policy` (default) needs no redeclaration. " +
				"With `arguments`, the application declares it, and the provider checks the declaration." + attach,
		},
		"take_over_from": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Name of another pipeline that has the queue and releases it in a later apply, " +
				"so that nothing is lost in between. " +
				"It raises the priority of the queue's policy by one. Remove it once the other pipeline has released the queue.",
		},
		"dead_letter_strategy": schema.StringAttribute{
			Optional:   true,
			Validators: OneOf(topology.AtLeastOnce, topology.AtMostOnce),
			MarkdownDescription: "`at-least-once` (default for quorum queues) loses nothing, and needs a queue without a length limit. " +
				"`at-most-once` is the default for classic queues, which support no other.",
		},
		"policy_definition_json": schema.StringAttribute{
			Optional:            true,
			CustomType:          jsontypes.NormalizedType{},
			MarkdownDescription: "More keys for the policy of this queue, as JSON. " + definition,
		},
	}
}

// ComputedString describes a text that the provider computes.
func ComputedString(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// ForceDestroy describes the attribute force_destroy. The text kind names the resource.
func ForceDestroy(kind string) schema.Attribute {
	return schema.BoolAttribute{
		Optional: true, Computed: true,
		Default: booldefault.StaticBool(false),
		MarkdownDescription: "Whether a destroy deletes the " + kind + "'s queues with their messages. " +
			"Default: `false`, so a destroy fails unless the queues are empty. " +
			"It must be applied before the destroy.",
	}
}

var notNegative = regexp.MustCompile("^[^-]")

// Timeouts is [timeouts.Attributes] that also refuses negative durations.
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
