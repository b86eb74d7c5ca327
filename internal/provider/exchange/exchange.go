// Package exchange implements the resource rabbitmq_exchange.
package exchange

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Resource is rabbitmq_exchange.
var Resource = plain.Define(plain.ResourceType[topology.Exchange]{
	ResourceType: entity.ResourceType{
		Type: "exchange", Name: configured.Exchange, Common: true,
		Parts:  []entity.Part{entity.VhostPart, {Name: "name", Description: "Name of the exchange.", Example: "orders"}},
		Shown:  []string{"type", "durable", "auto_delete", "internal", "arguments"},
		Schema: exchangeSchema,
	},
	Equal: topology.Exchange.Equal,
	Owned: func(id []string, _ topology.Exchange, all topology.Vhost) preflight.Findings {
		return preflight.CheckExchange(id[1], all)
	},
	Refusals: refusals,
	Store: func(run *configured.Provider) plain.Store[topology.Exchange] {
		return store{plain.InVhost[topology.Exchange]{
			Run: run, Of: func(vhost topology.Vhost) map[string]topology.Exchange { return vhost.Exchanges },
			PutNamed: run.Client.PutExchange, DeleteNamed: run.Client.DeleteUnusedExchange,
		}}
	},
}, func(r plain.Resource[model, topology.Exchange, *model]) entity.Resource[model] {
	return exchanges{plain.Recreated[model, topology.Exchange, *model]{
		Resource: r, Want: want, Interrupt: func(state *model) { state.ID = types.StringNull() },
	}}
})

// exchanges is the resource during one call from Terraform.
type exchanges struct {
	plain.Recreated[model, topology.Exchange, *model]
}

func want(change *apply.Change, name string, planned topology.Exchange) {
	change.Wanted.Exchanges[name] = planned
	if live, exists := change.All.Exchanges[name]; exists {
		change.Live.Exchanges[name] = live
	}
}

// Plan also warns of a re-creation.
func (e exchanges) Plan(ctx context.Context, plan, prior *model) diag.Diagnostics {
	diags := e.Resource.Plan(ctx, plan, prior)
	changes := prior == nil || !plan.Object().Equal(prior.Object())
	if changes && attribute.Known(plan.Type) && e.Run.Configured() && !e.Run.HasWritten() {
		diags.Append(report.Warnings(preflight.WarnOfArguments(plan.Object().Arguments, "arguments"))...)
		user, unreached := entity.ReachForPlan(ctx, e.Run)
		diags.Append(unreached...)
		if user != nil {
			diags.Append(e.checkType(ctx, *plan)...)
		}
	}
	if prior != nil && changes && plan.known() {
		diags.Append(recreated(*plan))
	}
	return diags
}

// Update re-creates the exchange. If a plugin is gone, neither the new nor the old exchange could be created again.
func (e exchanges) Update(ctx context.Context, plan, state *model) diag.Diagnostics {
	if diags := e.checkType(ctx, *plan); diags.HasError() {
		return diags
	}
	return e.Recreated.Update(ctx, plan, state)
}

// checkType refuses a type that the broker does not have.
func (e exchanges) checkType(ctx context.Context, m model) diag.Diagnostics {
	wanted := m.Type.ValueString()
	if all, err := e.Run.Client.ExchangeTypes(ctx); err == nil && len(all) > 0 && !slices.Contains(all, wanted) {
		return diag.Diagnostics{unknownType(wanted, all)}
	}
	return nil
}

// PlanDestroy warns of uses that make the destroy fail.
func (e exchanges) PlanDestroy(ctx context.Context, state model) diag.Diagnostics {
	return plain.CheckPlan(ctx, e.Run, state.Vhost.ValueString(), func(all topology.Vhost) preflight.Findings {
		return preflight.ExchangeInUse(state.Name.ValueString(), all, true)
	})
}

// Delete deletes the exchange if nothing uses it. A recent listing that has a use can still have what this apply has just deleted, so
// a fresh one decides. The broker itself refuses if there is a binding from the exchange.
func (e exchanges) Delete(ctx context.Context, state model) diag.Diagnostics {
	vhost, name := state.Vhost.ValueString(), state.Name.ValueString()
	defer e.Run.Applier.HoldExchange(vhost, name)()
	all, err := e.Run.RecentForDelete(ctx, vhost)
	if broker.IsNotFound(err) {
		return e.GoneWithVhost(ctx, state, vhost, err)
	}
	if err == nil && len(preflight.ExchangeInUse(name, all, false)) == 0 && len(e.Unrestored(name, all)) == 0 {
		return e.Resource.Delete(ctx, state)
	}
	all, diags := plain.CheckApply(ctx, e.Run, vhost, func(all topology.Vhost) preflight.Findings {
		return preflight.ExchangeInUse(name, all, false)
	})
	if diags.Append(e.KeepUnrestored(state, all)...); diags.HasError() {
		return diags
	}
	return e.Resource.Delete(ctx, state)
}

func exchangeSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "An exchange. RabbitMQ cannot change one, so apply deletes it and creates it again with all its bindings.",
		Attributes: map[string]schema.Attribute{
			"name":  attribute.Name("exchange"),
			"vhost": entity.Vhost("exchange"),
			"type": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Type: `direct`, `fanout`, `topic`, `headers`, or a plugin's type. Required without a block `settings`.",
			},
			"durable":     attribute.Flag(true, "Whether the exchange survives a restart of the broker. Default: `true`."),
			"auto_delete": attribute.Flag(false, "Whether the broker deletes the exchange once its last binding is gone. Default: `false`."),
			"internal":    attribute.Flag(false, "Whether only bindings can publish to the exchange, and clients cannot. Default: `false`."),
			"arguments":   attribute.Table("Arguments, such as `{ alternate-exchange = \"orders.unrouted\" }`.", attribute.Arguments),
			"id":          attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{
			"settings": attribute.Block("The attributes as the provider `cyrilgdn/rabbitmq` has them.", map[string]schema.Attribute{
				"type":        attribute.Text("Type."),
				"durable":     attribute.Flag(false, "Whether the exchange survives a restart of the broker. Default: `false`."),
				"auto_delete": attribute.Flag(false, "Whether the broker deletes the exchange once its last binding is gone. Default: `false`."),
				"arguments":   schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Arguments."},
			}, "type", "durable", "auto_delete", "internal", "arguments"),
		},
	}
}

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	plain.NamedInVhost
	Type       types.String  `tfsdk:"type"`
	Durable    types.Bool    `tfsdk:"durable"`
	AutoDelete types.Bool    `tfsdk:"auto_delete"`
	Internal   types.Bool    `tfsdk:"internal"`
	Arguments  types.Dynamic `tfsdk:"arguments"`
	Settings   types.List    `tfsdk:"settings"`
}

// settings are the block that other providers have.
type settings struct {
	Type       types.String `tfsdk:"type"`
	Durable    types.Bool   `tfsdk:"durable"`
	AutoDelete types.Bool   `tfsdk:"auto_delete"`
	Arguments  types.Map    `tfsdk:"arguments"`
}

func (m model) Validate(context.Context) diag.Diagnostics {
	if m.Type.IsNull() && m.Settings.IsNull() {
		return diag.Diagnostics{plain.Lacks("type", "settings")}
	}
	return nil
}

func (m *model) Compute() {
	m.NamedInVhost.Compute()
	if s := attribute.BlockOf[settings](m.Settings); s != nil {
		m.Type, m.Durable, m.AutoDelete = s.Type, s.Durable, s.AutoDelete
	}
	if m.Settings.IsUnknown() {
		m.Type, m.Durable, m.AutoDelete = types.StringUnknown(), types.BoolUnknown(), types.BoolUnknown()
	}
}

func (m *model) Object() topology.Exchange {
	exchange := topology.Exchange{
		Type: m.Type.ValueString(), Transient: !m.Durable.ValueBool(), AutoDelete: m.AutoDelete.ValueBool(),
		Internal: m.Internal.ValueBool(), Arguments: attribute.Arguments(m.Arguments),
	}
	if s := attribute.BlockOf[settings](m.Settings); s != nil {
		exchange.Arguments = attribute.TextArguments(s.Arguments)
	}
	return exchange
}

// known reports whether the exchange's properties are known.
func (m *model) known() bool {
	return attribute.AllKnown(m.Type, m.Durable, m.AutoDelete, m.Internal, m.Arguments, m.Settings)
}

func (m *model) Imported() bool { return m.Type.IsNull() }

func (m *model) Show(live topology.Exchange) {
	m.Type, m.Durable = types.StringValue(live.Type), types.BoolValue(!live.Transient)
	m.AutoDelete, m.Internal = types.BoolValue(live.AutoDelete), types.BoolValue(live.Internal)
	if attribute.BlockOf[settings](m.Settings) == nil {
		m.Arguments = attribute.ArgumentsObject(live.Arguments)
		return
	}
	attribute.SetBlock(&m.Settings, settings{m.Type, m.Durable, m.AutoDelete, attribute.TextArgumentsValue(live.Arguments)})
}

// store is the exchanges of the broker.
type store struct {
	plain.InVhost[topology.Exchange]
}

// All leaves out the exchanges that each vhost has.
func (s store) All(ctx context.Context, vhost string) ([][]string, error) {
	all, err := s.InVhost.All(ctx, vhost)
	return slices.DeleteFunc(all, func(parts []string) bool { return parts[0] == "" || strings.HasPrefix(parts[0], "amq.") }), err
}
