package delayedexchange

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
)

// exchangeSchema describes the resource.
func exchangeSchema(ctx context.Context) schema.Schema {
	replaces := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	return schema.Schema{
		MarkdownDescription: "A delayed exchange, without a plugin: " +
			"messages that are published to it with the header `x-delay`, in milliseconds, reach the queues that are bound to " +
			"`deliver_exchange` when that time is over, up to ten years later. " +
			"The sidecar `rabbitmq-retry worker` reads the header; replicated queues, one per power of two, keep the messages.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, PlanModifiers: replaces,
				MarkdownDescription: "Name of the exchange that messages are published to, with which the names of all its objects begin. " +
					"It must not contain `/`, or `.retry.` with a digit after it. " +
					"Changing it replaces the delayed exchange.",
			},
			"vhost": entity.Vhost("delayed exchange"),
			"type": schema.StringAttribute{
				Optional: true, Computed: true,
				Default:    stringdefault.StaticString(delayed.Types()[0]),
				Validators: attribute.OneOf(delayed.Types()...),
				MarkdownDescription: "Type of `deliver_exchange`, by which due messages are routed: " +
					"`topic` (default), `direct`, `fanout` or `headers`. " +
					"Changing it is refused while anything is bound to that exchange.",
			},
			"max_delay": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "The longest delay, as a Go duration such as `24h` or `720h` (hours are the longest unit), up to `87600h`. " +
					"It decides how many levels there are. " +
					"Messages with a longer one go to the unrouted queue. " +
					"Changing it loses no message: levels that are not needed any more drain first.",
			},
			"precision": schema.StringAttribute{
				Optional: true, Computed: true,
				Default: stringdefault.StaticString(delayed.DefaultPrecision),
				MarkdownDescription: "What delays are rounded up to, as a Go duration. A coarser one needs fewer levels. Default: `100ms`. " +
					"Changing it loses no message: the levels of the old precision drain beside those of the new one.",
			},
			"policy_priority": attribute.PolicyPriority(delayed.DefaultPolicyPriority,
				"Priority of the policy that keeps other policies off the delayed exchange's queues. "),
			"force_destroy": attribute.ForceDestroy("delayed exchange"),
			"timeouts": attribute.Timeouts(ctx, timeouts.Opts{
				Update: true, Delete: true,
				UpdateDescription: "How long an apply waits for queues that have to be re-created or are retired, as long as messages are in them. " +
					"Unset, it does not wait.",
				DeleteDescription: "How long a destroy waits until nothing is left in the delayed exchange's queues. " +
					"Unset, it refuses at once if there is.",
			}),
			"id":       attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
			"topology": attribute.TopologyAttribute(),
			"deliver_exchange": attribute.ComputedString("Exchange that routes due messages by their routing key or headers: " +
				"bind the queues of consumers here."),
			"inbox_queue": attribute.ComputedString("Queue that the sidecar consumes."),
			"unrouted_queue": attribute.ComputedString("Queue that keeps what could not be delayed, and what no queue was bound for when it " +
				"was due."),
			"worker": schema.ObjectAttribute{
				Computed:       true,
				AttributeTypes: attribute.DelayedWorkerType,
				MarkdownDescription: "The sidecar's configuration of this delayed exchange: an element of the list `delayed_exchanges`, " +
					"as in `jsonencode({ delayed_exchanges = [rabbitmq_delayed_exchange.events.worker] })`. " +
					"It holds no secrets.",
			},
			"worker_permissions": schema.SingleNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The least permissions that the sidecar's user needs in the vhost.",
				Attributes:          attribute.PermissionsAttributes("Pattern of the queues that may be consumed."),
			},
			"publisher_permissions": schema.SingleNestedAttribute{
				Computed: true,
				MarkdownDescription: "The least permissions that a publisher's user needs in the vhost. " +
					"Give publishers no more: whoever writes to the levels can have messages delivered early, or hold up those of others.",
				Attributes: attribute.PermissionsAttributes("Pattern of the queues that may be read: none."),
			},
			"operator_permissions": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "The least permissions in the vhost of who looks after the delayed exchange, by command of `rabbitmq-retry`: " +
					"`list`, `show`, `export`, `delete`, `replay`, `import`, `repair` and `status`. " +
					"A replay with `--to` writes to the default exchange (`amq.default`) instead, an import with `--replay` to what a replay does.",
				NestedObject: schema.NestedAttributeObject{Attributes: attribute.PermissionsAttributes("Pattern of the queues that may be read.")},
			},
			"levels": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "Queues of the levels, by name. " +
					"A message waits in those whose delays add up to its own.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"delay": attribute.ComputedString("How long messages stay in the queue."),
				}},
			},
			"retired_levels": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "Queues of levels that are not needed any more, by name. " +
					"They stay until their messages have gone on, and as long as messages from higher ones go through them; " +
					"a later apply removes them.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"delay": attribute.ComputedString("How long messages stay in the queue."),
					"drained": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the queue was empty when it was last read. " +
						"Once all above it are, too, the next plan proposes their removal."},
				}},
			},
		},
	}
}
