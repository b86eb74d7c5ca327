// Package vhost implements the resource rabbitmq_vhost.
package vhost

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Resource is rabbitmq_vhost.
var Resource = plain.Define(plain.ResourceType[broker.VhostSettings]{
	ResourceType: entity.ResourceType{
		Type: "vhost", Name: configured.Vhost, Common: true,
		Parts:  []entity.Part{{Name: "name", Description: "Name of the virtual host.", Example: "shop"}},
		Shown:  []string{"description", "tags", "default_queue_type", "tracing", "max_connections", "max_queues"},
		Schema: vhostSchema,
	},
	Equal: equal,
	Existed: func(ctx context.Context, run *configured.Provider, id []string) (bool, error) {
		_, exists, err := store{run}.now(ctx, id)
		return exists, err
	},
	Store: func(run *configured.Provider) plain.Store[broker.VhostSettings] { return store{run} },
}, func(r plain.Resource[model, broker.VhostSettings, *model]) entity.Resource[model] { return vhosts{r} })

// vhosts is the resource during one call from Terraform.
type vhosts struct {
	plain.Resource[model, broker.VhostSettings, *model]
}

// equal compares settings. If no default queue type is wanted, the live one counts.
func equal(wanted, live broker.VhostSettings) bool {
	return wanted.Description == live.Description && slices.Equal(wanted.Tags, live.Tags) && wanted.Tracing == live.Tracing &&
		(wanted.DefaultQueueType == "" || wanted.DefaultQueueType == live.DefaultQueueType) && maps.Equal(wanted.Limits, live.Limits)
}

// Create also notes that nothing is in the new vhost.
func (v vhosts) Create(ctx context.Context, plan *model) diag.Diagnostics {
	diags := v.Resource.Create(ctx, plan)
	if !diags.HasError() {
		v.Run.Found(plan.Name.ValueString(), topology.Vhost{}, nil)
	}
	return diags
}

// PlanDestroy warns of queues that are deleted with the vhost.
func (v vhosts) PlanDestroy(ctx context.Context, state model) diag.Diagnostics {
	if v.Run.HasWritten() {
		return nil
	}
	all, err := v.Run.Listed(ctx, state.Name.ValueString())
	if err != nil || len(all.Queues) == 0 {
		return nil
	}
	return diag.Diagnostics{willBeRefused(state, len(all.Queues))}
}

// Delete deletes a vhost that has no queues, or any vhost by force.
func (v vhosts) Delete(ctx context.Context, state model) diag.Diagnostics {
	if !state.ForceDestroy.ValueBool() {
		all, err := v.Run.Fresh(ctx, state.Name.ValueString())
		if err != nil && !broker.IsNotFound(err) {
			return diag.Diagnostics{entity.CannotList(state.Name.ValueString(), entity.SoNothingChanged, err)}
		}
		if len(all.Queues) > 0 {
			return diag.Diagnostics{hasQueues(state, slices.Sorted(maps.Keys(all.Queues)))}
		}
	}
	return v.Resource.Delete(ctx, state)
}

// store is the vhosts of the broker.
type store struct{ run *configured.Provider }

func (s store) all(ctx context.Context) (map[string]broker.VhostSettings, error) {
	return configured.Once(ctx, s.run, "vhosts", s.run.Client.VhostSettings)
}

func (s store) Live(ctx context.Context, id []string) (broker.VhostSettings, bool, error) {
	all, err := s.all(ctx)
	settings, exists := all[id[0]]
	return settings, exists, err
}

func (s store) now(ctx context.Context, id []string) (broker.VhostSettings, bool, error) {
	all, err := s.run.Client.VhostSettings(ctx)
	settings, exists := all[id[0]]
	return settings, exists, err
}

func (s store) Put(ctx context.Context, id []string, wanted broker.VhostSettings) (created bool, err error) {
	before, existed, err := s.now(ctx, id)
	if err != nil {
		return false, err
	}
	sent := wanted
	if sent.DefaultQueueType == "" {
		sent.DefaultQueueType = before.DefaultQueueType // RabbitMQ 4.3 resets what a request leaves out
	}
	created, err = s.run.Client.PutVhost(ctx, id[0], sent)
	if broker.IsUnanswered(err) && !existed {
		err = errors.Join(err, s.run.Client.GrantCreator(ctx, id[0]))
	}
	if err != nil {
		return false, err
	}
	if kind := wanted.DefaultQueueType; !created && kind != "" && kind != before.DefaultQueueType {
		switch now, _, err := s.now(ctx, id); {
		case err != nil:
			return false, err
		case now.DefaultQueueType != kind:
			return false, keptQueueType(now.DefaultQueueType)
		}
	}
	if err = s.putTracing(ctx, id, sent); err == nil {
		err = s.run.Client.PutLimits(ctx, broker.VhostLimits, id[0], before.Limits, wanted.Limits)
	}
	if err != nil && created {
		// What others have made meanwhile stays.
		queues, unlisted := s.run.Client.Queues(ctx, id[0])
		created = unlisted == nil && len(queues) == 0
	}
	return created, err
}

// putTracing changes the tracing if it differs: a new vhost has what a deleted one of its name had.
func (s store) putTracing(ctx context.Context, id []string, wanted broker.VhostSettings) error {
	now, _, err := s.now(ctx, id)
	if err != nil || now.Tracing == wanted.Tracing {
		return err
	}
	return s.run.Client.PutTracing(ctx, id[0], wanted)
}

func (s store) Delete(ctx context.Context, id []string) error {
	return s.run.Client.DeleteVhost(ctx, id[0])
}

func (s store) All(ctx context.Context, _ string) ([][]string, error) {
	all, err := s.all(ctx)
	return plain.Names(all), err
}

func vhostSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A virtual host, with its limits.",
		Attributes: map[string]schema.Attribute{
			"name":        attribute.Name("virtual host"),
			"description": attribute.TextOr("", "Description."),
			"tags": schema.SetAttribute{
				Optional: true, Computed: true, ElementType: types.StringType,
				Default:             setdefault.StaticValue(types.SetValueMust(types.StringType, nil)),
				MarkdownDescription: "Tags.",
			},
			"default_queue_type": schema.StringAttribute{
				Optional: true, Computed: true, Validators: attribute.OneOf("classic", "quorum", "stream"),
				PlanModifiers:       []planmodifier.String{unlessConfigured{}},
				MarkdownDescription: "Type of queues that a client declares without a type. Default: the present one, or the broker's default.",
			},
			"tracing": attribute.Flag(false,
				"Whether the broker copies each message to the exchange `amq.rabbitmq.trace`. Default: `false`."),
			"max_connections": attribute.Limit("The most connections that the virtual host accepts. Default: no limit."),
			"max_queues":      attribute.Limit("The most queues that the virtual host can have. Default: no limit."),
			"force_destroy": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether a destroy also deletes the queues in the virtual host, with their messages. " +
					"Without it, a destroy fails while there are queues. Default: `false`.",
			},
			"id": attribute.ComputedString("The name."),
		},
	}
}

// unlessConfigured keeps the state's value if the configuration has none.
type unlessConfigured struct{}

func (unlessConfigured) Description(context.Context) string {
	return "keeps the value unless the configuration has one"
}

func (m unlessConfigured) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

// PlanModifyString keeps the state's value, null for a new resource.
func (unlessConfigured) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.ConfigValue.IsNull() {
		resp.PlanValue = req.StateValue
	}
}

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	plain.Named
	Description      types.String `tfsdk:"description"`
	Tags             types.Set    `tfsdk:"tags"`
	DefaultQueueType types.String `tfsdk:"default_queue_type"`
	Tracing          types.Bool   `tfsdk:"tracing"`
	MaxConnections   types.Int64  `tfsdk:"max_connections"`
	MaxQueues        types.Int64  `tfsdk:"max_queues"`
	ForceDestroy     types.Bool   `tfsdk:"force_destroy"`
}

func (m model) Validate(context.Context) diag.Diagnostics { return nil }

func (m *model) Object() broker.VhostSettings {
	return broker.VhostSettings{
		Description: m.Description.ValueString(), Tags: attribute.Texts(m.Tags),
		DefaultQueueType: m.DefaultQueueType.ValueString(), Tracing: m.Tracing.ValueBool(),
		Limits: attribute.Limits(map[string]types.Int64{"max-connections": m.MaxConnections, "max-queues": m.MaxQueues}),
	}
}

func (m *model) Show(live broker.VhostSettings) {
	m.Description, m.Tracing = types.StringValue(live.Description), types.BoolValue(live.Tracing)
	m.Tags = types.SetValueMust(types.StringType, attribute.StringValues(live.Tags))
	m.DefaultQueueType = attribute.TextValue(live.DefaultQueueType)
	m.MaxConnections, m.MaxQueues = attribute.LimitValue(live.Limits, "max-connections"), attribute.LimitValue(live.Limits, "max-queues")
}
