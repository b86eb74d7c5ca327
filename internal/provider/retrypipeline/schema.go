package retrypipeline

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// pipelineSchema describes the resource.
func pipelineSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A retry pipeline: " +
			"messages that consumers reject from its work queues wait, come back, and are parked in a failed queue after the last attempt. " +
			"The sidecar `rabbitmq-retry worker` counts the attempts, unless another `engine` does.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required:      true,
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "Name of the pipeline, with which the names of its exchanges and queues begin. " +
					"It must not contain `/`, or `.retry.` with a digit after it. " +
					"Changing it replaces the pipeline.",
			},
			"vhost": entity.Vhost("pipeline"),
			"engine": schema.StringAttribute{
				Optional: true, Computed: true,
				Default:       stringdefault.StaticString(pipeline.EngineWorker),
				Validators:    attribute.OneOf(pipeline.Engines()...),
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "Who counts the attempts and delays: `worker` (default), the sidecar, on every release; " +
					"`native`, quorum work queues themselves, from RabbitMQ 4.3.1 on, without a sidecar and with linear delays only; " +
					"or `consumer`, the application's consumers, from 4.0 on, with one delay. " +
					"The guide [Which engine](../guides/which-engine.md) compares them, and says what consumers have to call. " +
					"Changing it replaces the pipeline, which is refused while it has work queues.",
			},
			"delays": schema.ListAttribute{
				Required:    true,
				ElementType: types.StringType,
				MarkdownDescription: "Delays before attempt 2, 3, 4 and so on, " +
					"as Go durations such as `500ms`, `5s`, `1m30s` or `2h`; the last one repeats. " +
					"`0s` retries at once. " +
					"Changing them loses no message: the queue of a delay that left the list drains first.",
			},
			"max_attempts": schema.Int64Attribute{
				Optional: true, Computed: true,
				PlanModifiers: []planmodifier.Int64{defaultAttempts{}},
				MarkdownDescription: "Deliveries of a message in total, the first one included. " +
					"Default: one more than there are delays.",
			},
			"max_age": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "How long after it failed first a message may come back, as a Go duration such as `24h`. " +
					"A message whose next delay would end later is not retried any more: it goes to the failed queue at once as `too_old`. " +
					"Default: none, `max_attempts` alone decides.",
			},
			"retry_on": schema.SetAttribute{
				Optional: true, Computed: true,
				ElementType: types.StringType,
				Default:     setdefault.StaticValue(types.SetValueMust(types.StringType, []attr.Value{types.StringValue(pipeline.ReasonRejected)})),
				MarkdownDescription: "Reasons for which messages are retried: `rejected`, which is always part of it, " +
					"and any of `expired`, `maxlen` and `delivery_limit`. " +
					"Other messages go to the failed queue at once. " +
					"Default: `[\"rejected\"]`.",
			},
			"queue_type": schema.StringAttribute{
				Optional: true, Computed: true,
				Default:       stringdefault.StaticString(topology.Quorum),
				Validators:    attribute.OneOf(topology.Quorum, topology.Classic),
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "Type of the pipeline's own queues: `quorum` (default), or `classic` for a single node. " +
					"Changing it replaces the pipeline.",
			},
			"work_queues": schema.MapNestedAttribute{
				Optional: true, Computed: true,
				Default: mapdefault.StaticValue(types.MapValueMust(attribute.WorkQueueType, map[string]attr.Value{})),
				MarkdownDescription: "Queues whose messages are retried, by name. " +
					"A queue can belong to one pipeline only.",
				NestedObject: schema.NestedAttributeObject{Attributes: workQueueAttributes()},
			},
			"policy_priority": attribute.PolicyPriority(pipeline.DefaultPolicyPriority, "Priority of the pipeline's policies. "),
			"policy_definition_json": schema.StringAttribute{
				Optional:   true,
				CustomType: jsontypes.NormalizedType{},
				MarkdownDescription: "More keys for the policies that attach work queues, as JSON, " +
					"for example `jsonencode({ \"consumer-timeout\" = 3600000 })`: " +
					"the keys of a policy that the pipeline's would shadow have to stand here, or in the work queue. " +
					"`null` drops such a key.",
			},
			"force_destroy": attribute.ForceDestroy("pipeline"),
			"timeouts": attribute.Timeouts(ctx, timeouts.Opts{
				Update: true, Delete: true,
				UpdateDescription: "How long an apply waits for the queues of delays that left the schedule, " +
					"and for pending dead letters of work queues. " +
					"Unset, it does not wait: the queues are removed by a later apply.",
				DeleteDescription: "How long a destroy waits until nothing is left in the pipeline's queues. " +
					"Unset, it refuses at once if there is.",
			}),
			"topology": attribute.TopologyAttribute(),
			"id":       attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
			"dead_letter_exchange": attribute.ComputedString("Exchange that work queues dead-letter to. " +
				"With the engine `worker`, a consumer that knows more than \"it failed\" publishes here."),
			"inbox_queue":       attribute.ComputedString("Queue that the sidecar consumes, null without one."),
			"failed_queue_name": attribute.ComputedString("Queue that holds the messages that are not retried any more."),
			"gives_up_after": attribute.ComputedString("Sum of all delays of a message that fails every time, as soon as it is back: " +
				"what `delays`, `max_attempts` and `max_age` of the pipeline come to. " +
				"In a work queue with a `max_attempts` of its own it is another."),
			"worker": schema.ObjectAttribute{
				Computed:       true,
				AttributeTypes: attribute.WorkerType,
				MarkdownDescription: "The sidecar's configuration of this pipeline: " +
					"an element of the list `pipelines`, as in `jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] })`. " +
					"It holds no secrets. Null without a sidecar.",
			},
			"worker_permissions": schema.SingleNestedAttribute{
				Computed: true,
				MarkdownDescription: "The least permissions that the sidecar's user needs in the vhost. " +
					"The default exchange (`amq.default`) is written only to save messages whose work queue lost its binding. " +
					"Null without a sidecar.",
				Attributes: attribute.PermissionsAttributes("Pattern of the queues that may be consumed."),
			},
			"operator_permissions": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "The least permissions in the vhost of who looks after the pipeline, by command of `rabbitmq-retry`: " +
					"`list`, `show`, `export`, `delete`, `replay`, `import`, `repair` and `status`. " +
					"A replay with `--to` writes to the default exchange (`amq.default`) instead, an import with `--replay` to what a replay does.",
				NestedObject: schema.NestedAttributeObject{Attributes: attribute.PermissionsAttributes("Pattern of the queues that may be read.")},
			},
			"failed_queue_permissions": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "The least permissions in the vhost of who looks after the `failed_queue` of work queues, by that queue: " +
					"for `rabbitmq-retry failed` with `--queue`, but for `import` and `replay --to`, which write to `amq.default`.",
				NestedObject: schema.NestedAttributeObject{Attributes: attribute.PermissionsAttributes("Pattern of the queues that may be read.")},
			},
			"detached_queues": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "Queues that are no work queues any more, by name. " +
					"They stay bound, so that what they rejected before comes back. A sidecar has to run until they are drained.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"drained": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the inbox and all retry queues " +
						"were empty when they were last read. " +
						"The next change of the pipeline then removes the binding."},
				}},
			},
			"retired_queues": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "Retry queues whose delay left the schedule, by name. " +
					"They stay until their messages have come back; a later apply removes them.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"delay": attribute.ComputedString("The delay."),
					"drained": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the queue was empty when it was last read. " +
						"The next plan then proposes its removal."},
				}},
			},
		},
	}
}

func workQueueAttributes() map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"max_attempts": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "Deliveries in total of a message that fails in this queue, the first one included, " +
				"in place of the pipeline's `max_attempts`; it may be lower or higher.",
		},
		"declare": schema.BoolAttribute{
			Optional: true, Computed: true,
			Default: booldefault.StaticBool(false),
			MarkdownDescription: "Whether the pipeline creates and owns the queue. " +
				"Default: `false`, the queue exists already. " +
				"Setting it back to `false` never deletes the queue.",
		},
		"arguments_json": schema.StringAttribute{
			Optional:            true,
			CustomType:          jsontypes.NormalizedType{},
			MarkdownDescription: "More arguments for a declared queue, as JSON, for example `jsonencode({ x-single-active-consumer = true })`.",
		},
		"failed_queue": attribute.FailedQueueAttribute("of the pipeline's `queue_type`"),
	}
	maps.Copy(attributes, attribute.AttachAttributes(
		" For a declared queue the pipeline writes the arguments itself.",
		"They take precedence over those of the whole pipeline; `null` drops a key."))
	return attributes
}

// defaultAttempts plans one attempt more than there are delays if max_attempts is not set.
type defaultAttempts struct{}

// Description describes the default.
func (defaultAttempts) Description(context.Context) string { return "One more than there are delays." }

// MarkdownDescription describes the default.
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
