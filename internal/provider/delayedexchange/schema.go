package delayedexchange

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
)

func exchangeSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A delayed exchange without a plugin: it delivers each message after the milliseconds in its header `x-delay`, " +
			"up to ten years.",
		Attributes: map[string]schema.Attribute{
			"name": attribute.Text("Name of the exchange to publish to. Without `/`, and without `.retry.` before a digit. " +
				"Changing it replaces the delayed exchange."),
			"vhost": entity.Vhost("delayed exchange"),
			"type": attribute.TextOneOf(delayed.Types()[0],
				"Type of `deliver_exchange`, which routes due messages: `topic` (default), `direct`, `fanout` or `headers`. "+
					"It cannot be changed while anything is bound to that exchange.", delayed.Types()...),
			"max_delay": attribute.Text("The longest delay, as a Go duration such as `24h`, up to `87600h`. " +
				"Messages with a longer delay go to the unrouted queue."),
			"precision": attribute.TextOr(delayed.DefaultPrecision, "Delays are rounded up to a multiple of this Go duration. "+
				"A coarser precision needs fewer levels. Default: `100ms`."),
			"policy_priority": attribute.PolicyPriority(delayed.DefaultPolicyPriority,
				"Priority of the policy that protects the delayed exchange's queues. "),
			"force_destroy": attribute.ForceDestroy(),
			"timeouts": attribute.Timeouts(ctx, timeouts.Opts{
				Update: true, Delete: true,
				UpdateDescription: "How long an apply waits until retired queues, and queues that it must re-create, are empty. " +
					"If unset, it does not wait.",
				DeleteDescription: "How long a destroy waits until the delayed exchange's queues are empty. " +
					"If unset, it fails at once unless they are empty.",
			}),
			"id":       attribute.ComputedString("Import id: `<vhost>/<name>`, percent-encoded."),
			"topology": attribute.TopologyAttribute(),
			"deliver_exchange": attribute.ComputedString("Exchange that routes due messages by their routing key or headers: " +
				"bind the queues of consumers here."),
			"inbox_queue": attribute.ComputedString("Queue that the sidecar consumes."),
			"unrouted_queue": attribute.ComputedString("Queue for messages that could not be delayed, and for due messages that matched " +
				"no binding."),
			"worker": schema.ObjectAttribute{
				Computed:            true,
				AttributeTypes:      attribute.DelayedWorkerType,
				MarkdownDescription: "The sidecar's configuration: an element of `delayed_exchanges` in `worker.json`, without secrets.",
			},
			"worker_permissions": attribute.Permissions("Minimal permissions of the sidecar's user in the vhost.",
				"Pattern of the queues that the user can consume."),
			"publisher_permissions": attribute.Permissions("Minimal permissions of a publisher's user in the vhost. "+
				"A user who can also write to the levels can have messages delivered early.",
				"Pattern of the queues that the user can read: none."),
			"operator_permissions": attribute.OperatorPermissions(),
			"levels": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "Queues of the levels, by name. " +
					"A message waits in the levels whose delays add up to its own.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"delay": attribute.ComputedString("How long messages stay in the queue."),
				}},
			},
			"retired_levels": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Queues of levels that are no longer needed, by name. They stay until messages no longer pass through them.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"delay": attribute.ComputedString("How long messages stay in the queue."),
					"drained": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the queue was empty when it was last read. " +
						"Once all levels above it are also empty, the next plan proposes their removal."},
				}},
			},
		},
	}
}
