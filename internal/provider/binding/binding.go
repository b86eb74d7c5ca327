// Package binding implements the resource rabbitmq_binding.
package binding

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Resource is rabbitmq_binding.
var Resource = plain.Define(plain.ResourceType[topology.Binding]{
	ResourceType: entity.ResourceType{
		Type: "binding", Name: configured.Binding, Common: true,
		Parts: []entity.Part{
			entity.VhostPart,
			{Name: "source", Description: "Name of the exchange that the binding leads from.", Example: "orders"},
			{Name: "destination_type", Description: "\"queue\" or \"exchange\".", Example: "queue"},
			{Name: "destination", Description: "Name of the queue or exchange that the binding leads to.", Example: "orders.created"},
			{Name: "properties_key", Description: "The broker's identifier of the routing key and arguments.", Example: "order.created"},
		},
		Named: func(id []types.String) string {
			return topology.Binding{
				Source: id[1].ValueString(), ToExchange: id[2].ValueString() == toExchange, Destination: id[3].ValueString(),
			}.String()
		},
		FindImport:      findImport,
		MutableIdentity: true,
		Fixed:           attribute.Inputs{entity.VhostPart.Name, "source", "destination_type", "destination"},
		Schema:          bindingSchema,
	},
	Equal: topology.Binding.Equal,
	Refusals: []plain.Refusal{
		plain.Refused("destination", `^no queue`, "If this configuration creates it, refer to it, as in destination = rabbitmq_queue.NAME.name."),
		plain.Refused("source", `^no exchange`, "If this configuration creates it, refer to it, as in rabbitmq_exchange.NAME.name. "+
			"If the destination is a queue, remove destination_type."),
	},
	Owned: func(_ []string, b topology.Binding, all topology.Vhost) preflight.Findings {
		return preflight.CheckBinding(b, all)
	},
	Store: func(run *configured.Provider) plain.Store[topology.Binding] { return store{run} },
}, func(r plain.Resource[model, topology.Binding, *model]) entity.Resource[model] { return bindings{r} })

// bindings is the resource during one call from Terraform.
type bindings struct {
	plain.Resource[model, topology.Binding, *model]
}

// PlanDestroy warns of an exchange that deletes itself.
func (b bindings) PlanDestroy(ctx context.Context, state model) diag.Diagnostics {
	return plain.CheckPlan(ctx, b.Run, state.Vhost.ValueString(), func(all topology.Vhost) preflight.Findings {
		return preflight.BindingOfAutoDelete(state.Object(), all)
	})
}

// Plan also warns if an update would share a binding that exists.
func (b bindings) Plan(ctx context.Context, plan, prior *model) diag.Diagnostics {
	if plan.PropertiesKey.IsUnknown() && prior != nil && plan.Object().Equal(prior.Object()) {
		plan.PropertiesKey = prior.PropertiesKey // the binding stays the same
	}
	diags := b.Resource.Plan(ctx, plan, prior)
	if prior != nil && len(b.Replacing().Different(*plan, *prior)) > 0 {
		diags.Append(b.PlanDestroy(ctx, *prior)...)
	}
	if prior == nil || !plan.PropertiesKey.IsUnknown() || !attribute.AllKnown(plan.RoutingKey, plan.Arguments, plan.ArgumentsJSON) {
		return diags
	}
	wanted := plan.Object()
	return append(diags, plain.CheckPlan(ctx, b.Run, plan.Vhost.ValueString(), func(all topology.Vhost) preflight.Findings {
		return preflight.SharedBinding(wanted, all)
	})...)
}

// Create binds. The broker does not say whether a binding existed before, so the bindings are listed before the first one is made.
func (b bindings) Create(ctx context.Context, plan *model) diag.Diagnostics {
	before, err := b.before(ctx, plan.Vhost.ValueString())
	if err != nil {
		return b.Failed("create", *plan, err)
	}
	turn := b.turn(*plan)
	turn.Lock()
	defer turn.Unlock()
	switch err := b.bind(ctx, plan); {
	case broker.IsUnanswered(err):
		return b.settled(ctx, plan, before, err)
	case err != nil:
		return b.Failed("create", *plan, err)
	}
	if exists := before[key(b.ID(*plan)[1:])] || turn.Last == configured.Made; exists && turn.Last != configured.Deleted {
		if !turn.AwaitDeletion(ctx) {
			turn.Last = configured.Refused
			return diag.Diagnostics{b.Exists(*plan)}
		}
		if err := b.bind(ctx, plan); err != nil {
			return b.Failed("create", *plan, err)
		}
	}
	turn.Last = configured.Made
	return nil
}

// settled keeps a binding whose creation was not answered, if it was absent before and is there.
func (b bindings) settled(ctx context.Context, plan *model, before map[string]bool, failed error) diag.Diagnostics {
	wanted := plan.Object()
	now, _ := b.Run.Client.BindingsFrom(context.WithoutCancel(ctx), plan.Vhost.ValueString(), wanted.Source)
	for _, live := range now {
		if !wanted.Equal(live) {
			continue
		}
		plan.PropertiesKey = types.StringValue(live.PropertiesKey)
		plan.Compute()
		if before[key(parts(live))] {
			return b.Uncertain(*plan, failed)
		}
		return nil
	}
	return b.Failed("create", *plan, failed)
}

// turn is the turn of a binding. If keys move from one resource to another, as when a list used with count loses its first one, a
// resource gives up what another has already made.
func (b bindings) turn(m model) *configured.Turn {
	return b.Run.BindingTurn(m.Vhost.ValueString(), m.Object())
}

// before has the keys of a vhost's bindings from before this apply.
func (b bindings) before(ctx context.Context, vhost string) (map[string]bool, error) {
	return configured.Once(ctx, b.Run, configured.Lasting+"bindings "+vhost, func(ctx context.Context) (map[string]bool, error) {
		bindings, err := b.Run.Client.Bindings(ctx, vhost)
		keys := make(map[string]bool, len(bindings))
		for _, live := range bindings {
			keys[key(parts(live))] = true
		}
		return keys, err
	})
}

// parts are the parts of the identity without the vhost.
func parts(b topology.Binding) []string {
	kind := "queue"
	if b.ToExchange {
		kind = toExchange
	}
	return []string{b.Source, kind, b.Destination, b.PropertiesKey}
}

func key(parts []string) string { return strings.Join(parts, "\x00") }

func (b bindings) bind(ctx context.Context, plan *model) error {
	defer b.Run.Applier.Hold(plan.Vhost.ValueString(), plan.Object())()
	key, err := b.Run.Client.BindKey(ctx, plan.Vhost.ValueString(), plan.Object())
	if err != nil {
		return err
	}
	plan.PropertiesKey = types.StringValue(key)
	plan.Compute()
	return nil
}

// Update makes the new binding before it deletes the old one, so that no message is without a route.
func (b bindings) Update(ctx context.Context, plan, state *model) diag.Diagnostics {
	if plan.Object().Equal(state.Object()) {
		return nil
	}
	turn := b.turn(*plan)
	turn.Lock()
	err := b.bind(ctx, plan)
	if err == nil {
		turn.Last = configured.Made
	}
	turn.Unlock()
	switch {
	case err != nil:
		return b.Failed("change", *plan, err)
	case plan.PropertiesKey.Equal(state.PropertiesKey):
		// A state of another provider that was not refreshed lacks the arguments, but has the key.
		return nil
	}
	diags := b.Delete(ctx, *state)
	if diags.HasError() {
		diags.Append(b.Cannot("change", b.Describe(plan.Identity())+" was made, but the old binding can still be there: apply again. "+
			"To keep the old binding instead, import the new one and destroy it: "+b.Importing(*plan)+"."))
	}
	return diags
}

// Delete unbinds, unless another resource of this apply needs the binding.
func (b bindings) Delete(ctx context.Context, state model) diag.Diagnostics {
	turn := b.turn(state)
	turn.Lock()
	defer turn.Unlock()
	switch turn.Last {
	case configured.Made:
		return nil
	case configured.Refused:
		return diag.Diagnostics{b.NotDeleted(state.Identity())}
	case configured.Deleted:
	}
	diags := b.Resource.Delete(ctx, state)
	if !diags.HasError() {
		turn.Last = configured.Deleted
		if of := state.Object(); !of.ToExchange {
			b.Run.Goes(configured.Binding, state.Vhost.ValueString(), of.Destination, of.String())
		}
	}
	return diags
}

// findImport finds the properties key of the binding that the end of an import id means.
func findImport(ctx context.Context, run *configured.Provider, id []string) (string, diag.Diagnostics) {
	if id[2] != "queue" && id[2] != toExchange {
		return "", nil
	}
	if !run.Configured() {
		return topology.Unescaped(id[4]), nil
	}
	all, err := run.Listed(ctx, id[0])
	if err != nil {
		return topology.Unescaped(id[4]), nil // Terraform reads the binding next, and says so
	}
	between := slices.DeleteFunc(slices.Clone(all.Bindings), func(b topology.Binding) bool { return !slices.Equal(parts(b)[:3], id[1:4]) })
	list := func(of []topology.Binding) (text string) {
		for _, b := range of[:min(len(of), 50)] {
			text += fmt.Sprintf("\n  - '%s/%s' is %s", entity.FormatID(id[:4]...), topology.OnlyEnd(b, between), b)
		}
		return text
	}
	found := topology.Meant(id[4], between)
	switch len(found) {
	case 1:
		return found[0].PropertiesKey, nil
	case 0:
		return "", diag.Diagnostics{diag.NewErrorDiagnostic("Binding does not exist", fmt.Sprintf(
			"No binding from exchange %q to %s %q in vhost %q has the routing key or the properties key %q. Bindings between the two: %d.%s",
			id[1], id[2], id[3], id[0], id[4], len(between), list(between)))}
	}
	return "", diag.Diagnostics{diag.NewErrorDiagnostic("More than one binding", fmt.Sprintf(
		"The end of the id, %q, fits %d bindings. Import one of these ids:%s", id[4], len(found), list(found)))}
}

func bindingSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A binding from an exchange to a queue or to another exchange.",
		Attributes: map[string]schema.Attribute{
			"vhost":       entity.Vhost("binding"),
			"source":      attribute.Text("Name of the exchange that the binding leads from. Changing it replaces the binding."),
			"destination": attribute.Text("Name of the queue or exchange that the binding leads to. Changing it replaces the binding."),
			"destination_type": attribute.TextOneOf("queue", "`queue` (default) or `exchange`. Changing it replaces the binding.",
				"queue", toExchange),
			"routing_key": attribute.TextOr("",
				"Routing key. Default: the empty text. A change makes the new binding first, and then deletes the old one."),
			"arguments":      attribute.Table("Arguments, such as `{ x-match = \"all\", type = \"order\" }`.", attribute.UntypedArguments),
			"arguments_json": attribute.JSON("Arguments as JSON."),
			"properties_key": attribute.ComputedString("The broker's identifier of the routing key and arguments."),
			"id": attribute.ComputedString(
				"`<vhost>/<source>/<destination_type>/<destination>/<properties_key>`, percent-encoded. " +
					"An import also takes the routing key in place of the properties key."),
		},
	}
}

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	Vhost           types.String         `tfsdk:"vhost"`
	Source          types.String         `tfsdk:"source"`
	Destination     types.String         `tfsdk:"destination"`
	DestinationType types.String         `tfsdk:"destination_type"`
	RoutingKey      types.String         `tfsdk:"routing_key"`
	Arguments       types.Dynamic        `tfsdk:"arguments"`
	ArgumentsJSON   jsontypes.Normalized `tfsdk:"arguments_json"`
	PropertiesKey   types.String         `tfsdk:"properties_key"`
	ID              types.String         `tfsdk:"id"`
}

const toExchange = "exchange"

func (m model) Identity() []types.String {
	return []types.String{m.Vhost, m.Source, m.DestinationType, m.Destination, m.PropertiesKey}
}

func (m model) Validate(context.Context) diag.Diagnostics {
	_, diags := attribute.ParseObject(m.ArgumentsJSON, path.Root("arguments_json"))
	if attribute.Known(m.ArgumentsJSON) && attribute.Known(m.Arguments) {
		diags.AddAttributeError(path.Root("arguments"), "Arguments are set twice", "Keep one of arguments and arguments_json.")
	}
	if strings.Contains(m.RoutingKey.ValueString(), "~") && len(m.Object().Arguments) > 0 {
		// seen on 3.10.8 and 4.3.6
		diags.AddAttributeError(path.Root("routing_key"), "Routing key with ~ and arguments",
			"RabbitMQ's management API fails on a binding with arguments whose routing key has a ~, and on every list with this binding. "+
				"Leave out the ~ or the arguments.")
	}
	if key := m.RoutingKey.ValueString(); (key == "." || key == "..") && len(m.Object().Arguments) == 0 {
		diags.AddAttributeError(path.Root("routing_key"), "Routing key . or ..",
			"RabbitMQ's management API cannot name a binding with this key, so nothing could delete it. Write another key, or add an argument.")
	}
	return diags
}

func (m *model) Compute() { m.ID = entity.ID(m.Identity()) }

func (m *model) Object() topology.Binding {
	b := topology.Binding{
		Source: m.Source.ValueString(), Destination: m.Destination.ValueString(), ToExchange: m.DestinationType.ValueString() == toExchange,
		RoutingKey: m.RoutingKey.ValueString(), Arguments: attribute.UntypedArguments(m.Arguments), PropertiesKey: m.PropertiesKey.ValueString(),
	}
	if attribute.Known(m.ArgumentsJSON) {
		b.Arguments, _ = attribute.ParseObject(m.ArgumentsJSON, path.Root("arguments_json"))
	}
	return b
}

func (m *model) Imported() bool { return m.ID.IsNull() }

func (m *model) Show(live topology.Binding) {
	m.RoutingKey = types.StringValue(live.RoutingKey)
	if attribute.Known(m.ArgumentsJSON) {
		m.ArgumentsJSON = attribute.ArgumentsValue(live.Arguments)
		return
	}
	m.Arguments = attribute.ArgumentsObject(live.Arguments)
}

// store is the bindings of the broker.
type store struct{ run *configured.Provider }

func (s store) Live(ctx context.Context, id []string) (topology.Binding, bool, error) {
	all, err := configured.Once(ctx, s.run, "bindings "+id[0], func(ctx context.Context) (map[string]topology.Binding, error) {
		vhost, err := s.run.Listed(ctx, id[0])
		byKey := make(map[string]topology.Binding, len(vhost.Bindings))
		for _, b := range vhost.Bindings {
			byKey[key(parts(b))] = b
		}
		return byKey, err
	})
	live, exists := all[key(id[1:])]
	return live, exists, err
}

func (s store) Put(ctx context.Context, id []string, binding topology.Binding) (bool, error) {
	return true, s.run.Client.Bind(ctx, id[0], binding)
}

func (s store) Delete(ctx context.Context, id []string) error {
	b := topology.Binding{Source: id[1], Destination: id[3], ToExchange: id[2] == toExchange, PropertiesKey: id[4]}
	defer s.run.Applier.Hold(id[0], b)()
	return s.run.Client.Unbind(ctx, id[0], b)
}

// All lists the bindings that somebody made. Each queue is also bound to the default exchange.
func (s store) All(ctx context.Context, vhost string) ([][]string, error) {
	all, err := s.run.Listed(ctx, vhost)
	var found [][]string
	for _, b := range all.Bindings {
		if b.Source != "" {
			found = append(found, parts(b))
		}
	}
	return found, err
}
