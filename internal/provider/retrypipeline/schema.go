package retrypipeline

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func pipelineSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Retries messages that consumers reject: each waits, comes back, and goes to a failed queue after its last attempt.",
		Attributes: map[string]schema.Attribute{
			"name": attribute.Text("Name of the pipeline, and prefix of its exchanges and queues. " +
				"Without `/`, and without `.retry.` before a digit. Changing it replaces the pipeline."),
			"vhost": entity.Vhost("pipeline"),
			"engine": attribute.TextOneOf(pipeline.EngineWorker,
				"What counts attempts: `worker` (default, the sidecar), `native` (quorum queues, RabbitMQ 4.3.1+) "+
					"or `consumer` (RabbitMQ 4.0+). Changing it replaces the pipeline. Guide: \"Choosing an engine\".",
				pipeline.Engines()...),
			"delays": schema.ListAttribute{
				Required:    true,
				ElementType: types.StringType,
				MarkdownDescription: "Delays before attempts 2, 3, and so on, as Go durations such as `5s` or `1m30s`, up to `87600h`. " +
					"The last one repeats.",
			},
			"max_attempts": schema.Int64Attribute{
				Optional: true, Computed: true,
				PlanModifiers: []planmodifier.Int64{defaultAttempts{}},
				MarkdownDescription: "Deliveries of a message in total, including the first. Minimum: `2`. " +
					"Default: one more than there are delays.",
			},
			"max_age": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Longest time from a message's first failure to its last retry, such as `24h`. " +
					"Default: none, so `max_attempts` alone decides.",
			},
			"retry_on": schema.SetAttribute{
				Optional: true, Computed: true,
				ElementType: types.StringType,
				Default:     setdefault.StaticValue(types.SetValueMust(types.StringType, []attr.Value{types.StringValue(pipeline.ReasonRejected)})),
				MarkdownDescription: "Reasons to retry: `rejected` (required), `expired`, `maxlen`, `delivery_limit`. " +
					"Other messages go to the failed queue at once. Default: `[\"rejected\"]`.",
			},
			"queue_type": attribute.TextOneOf(topology.Quorum,
				"Type of the pipeline's own queues: `quorum` (default), or `classic` for a single node. Changing it replaces the pipeline.",
				topology.Quorum, topology.Classic),
			"work_queues": schema.MapNestedAttribute{
				Optional: true, Computed: true,
				Default: mapdefault.StaticValue(types.MapValueMust(attribute.WorkQueueType, map[string]attr.Value{})),
				MarkdownDescription: "Queues whose messages are retried, by name. " +
					"A queue can belong to one pipeline only.",
				NestedObject: schema.NestedAttributeObject{Attributes: workQueueAttributes()},
			},
			"policy_priority": attribute.PolicyPriority(pipeline.DefaultPolicyPriority, "Priority of the pipeline's policies. "),
			"policy_definition_json": attribute.JSON("More keys, as JSON, for the policies that attach work queues. " +
				"`null` drops a key of a policy that the pipeline's policy replaces."),
			"force_destroy": attribute.ForceDestroy(),
			"timeouts": attribute.Timeouts(ctx, timeouts.Opts{
				Update: true, Delete: true,
				UpdateDescription: "How long an apply waits for retired queues and pending dead letters, such as `10m`. " +
					"If unset, it does not wait.",
				DeleteDescription: "How long a destroy waits until the pipeline's queues are empty. " +
					"If unset, it fails at once unless they are empty.",
			}),
			"topology": attribute.TopologyAttribute(),
			"id":       attribute.ComputedString("Import id: `<vhost>/<name>`, percent-encoded."),
			"dead_letter_exchange": attribute.ComputedString("Exchange that work queues dead-letter to. " +
				"With the engine `worker`, a consumer that can tell more than \"it failed\" publishes the message here."),
			"inbox_queue":       attribute.ComputedString("Queue that the sidecar consumes. Null without a sidecar."),
			"failed_queue_name": attribute.ComputedString("Queue for messages that are no longer retried."),
			"gives_up_after": attribute.ComputedString("Sum of all delays of a message that fails at once on each delivery. " +
				"Work queues with their own `max_attempts` differ."),
			"worker": schema.ObjectAttribute{
				Computed:       true,
				AttributeTypes: attribute.WorkerType,
				MarkdownDescription: "The sidecar's configuration: an element of `pipelines` in `worker.json`, without secrets. " +
					"Null without a sidecar.",
			},
			"worker_permissions": attribute.Permissions("Minimal permissions of the sidecar's user in the vhost. "+
				"Null without a sidecar.", "Pattern of the queues that the user can consume."),
			"operator_permissions": attribute.OperatorPermissions(),
			"failed_queue_permissions": attribute.PermissionsByName("Minimal permissions in the vhost for `rabbitmq-retry failed --queue`, " +
				"by `failed_queue`, except for `import` and `replay --to`."),
			"detached_queues": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Former work queues, by name. They stay bound until messages that were rejected there have come back.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"drained": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the inbox and all retry queues " +
						"were empty when they were last read. " +
						"If so, the next change of the pipeline removes the binding."},
				}},
			},
			"retired_queues": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "Retry queues whose delay left the schedule, by name. " +
					"They stay until their messages have come back. A later apply removes them.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"delay": attribute.ComputedString("The delay."),
					"drained": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the queue was empty when it was last read. " +
						"If so, the next plan proposes its removal."},
				}},
			},
		},
	}
}

func workQueueAttributes() map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"max_attempts": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "Deliveries of a message in this queue, including the first. Minimum: `2`. " +
				"Default: the pipeline's `max_attempts`.",
		},
		"declare": attribute.Flag(false, "Whether the pipeline creates and owns the queue. "+
			"Default: `false`, for a queue that exists already. Setting it back to `false` never deletes the queue."),
		"arguments_json": attribute.JSON(
			"More arguments for a declared queue, as JSON, for example `jsonencode({ x-single-active-consumer = true })`."),
		"failed_queue": attribute.FailedQueueAttribute("of the pipeline's `queue_type`"),
	}
	maps.Copy(attributes, attribute.AttachAttributes(
		"They take precedence over the keys of the whole pipeline. `null` drops a key."))
	return attributes
}

// defaultAttempts plans one attempt more than there are delays if max_attempts is not set.
type defaultAttempts struct{}

func (defaultAttempts) Description(context.Context) string { return "One more than there are delays." }

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

// The types of the nested attributes.
var (
	retiredType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"delay":   types.StringType,
		"drained": types.BoolType,
	}}
	detachedType = types.ObjectType{AttrTypes: map[string]attr.Type{"drained": types.BoolType}}
)
