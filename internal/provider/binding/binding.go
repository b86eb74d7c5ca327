// Package binding implements the resource rabbitmq_binding.
package binding

import (
	"context"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// New makes the resource.
func New() resource.Resource { return entity.New(kind.Kind, of) }

// NewList makes the list resource.
func NewList() list.ListResource { return entity.NewList(kind.Kind, of) }

var kind = plain.Kind[topology.Binding]{
	Kind: entity.Kind{
		Type: "binding", Name: configured.Binding, Common: true,
		Parts: []entity.Part{
			entity.VhostPart,
			{Name: "source", Description: "Name of the exchange that the binding leads from."},
			{Name: "destination_type", Description: "\"queue\" or \"exchange\"."},
			{Name: "destination", Description: "Name of the queue or exchange that the binding leads to."},
			{Name: "properties_key", Description: "The broker's identifier of the routing key and arguments."},
		},
		MutableIdentity: true,
		Fixed:           attribute.Inputs{entity.VhostPart.Name, "source", "destination_type", "destination"},
		Schema:          bindingSchema,
	},
	Equal: topology.Binding.Equal,
	Owned: func(_ []string, b topology.Binding, all topology.Vhost) preflight.Findings {
		return preflight.CheckBinding(b, all)
	},
	Store: func(run *configured.Provider) plain.Store[topology.Binding] { return store{run} },
}

func of(run *configured.Provider) entity.Resource[model] {
	return bindings{plain.Resource[model, topology.Binding, *model]{Kind: kind, Run: run}}
}

// bindings is the resource during one call from Terraform.
type bindings struct {
	plain.Resource[model, topology.Binding, *model]
}

// Create binds. The broker does not say whether a binding existed before, so the bindings are listed before the first one is made.
func (b bindings) Create(ctx context.Context, plan *model) diag.Diagnostics {
	before, err := b.before(ctx, plan.Vhost.ValueString())
	if err != nil {
		return b.Failed("create", *plan, err)
	}
	turn := b.turn(ctx, *plan)
	turn.Lock()
	defer turn.Unlock()
	if diags := b.bind(ctx, plan); diags.HasError() {
		return diags
	}
	own := key(b.ID(*plan)[1:])
	_, again := b.deleted(ctx, plan.Vhost.ValueString()).LoadAndDelete(own)
	if _, exists := before.LoadOrStore(own, true); exists && !again {
		return diag.Diagnostics{b.Exists(*plan)}
	}
	turn.made = true
	return nil
}

// turn lets one resource at a time make or delete the same binding.
type turn struct {
	sync.Mutex
	// made says that a resource has made the binding in this apply, and needs it.
	made bool
}

// turn is the turn of a binding. If keys move from one resource to another, as when a list used with count loses its first one, a
// resource gives up what another has already made.
func (b bindings) turn(ctx context.Context, m model) *turn {
	all, _ := configured.Once(ctx, b.Run, configured.Lasting+"turns", func(context.Context) (*sync.Map, error) { return &sync.Map{}, nil })
	of := m.Object()
	of.PropertiesKey = ""
	found, _ := all.LoadOrStore(key(append([]string{m.Vhost.ValueString(), of.RoutingKey, of.Arguments.Key()}, parts(of)...)), &turn{})
	own, _ := found.(*turn)
	return own
}

// before has the keys of a vhost's bindings from before this apply, and of those that the apply has created.
func (b bindings) before(ctx context.Context, vhost string) (*sync.Map, error) {
	return configured.Once(ctx, b.Run, configured.Lasting+"bindings "+vhost, func(ctx context.Context) (*sync.Map, error) {
		var ids sync.Map
		bindings, err := b.Run.Client.Bindings(ctx, vhost)
		for _, live := range bindings {
			ids.Store(key(parts(live)), true)
		}
		return &ids, err
	})
}

// deleted has the keys of the bindings that this apply has deleted and not made again.
func (b bindings) deleted(ctx context.Context, vhost string) *sync.Map {
	keys, _ := configured.Once(ctx, b.Run, configured.Lasting+"deleted bindings "+vhost, func(context.Context) (*sync.Map, error) {
		return &sync.Map{}, nil
	})
	return keys
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

func (b bindings) bind(ctx context.Context, plan *model) diag.Diagnostics {
	key, err := b.Run.Client.BindKey(ctx, plan.Vhost.ValueString(), plan.Object())
	if err != nil {
		return b.Failed("create", *plan, err)
	}
	plan.PropertiesKey = types.StringValue(key)
	plan.Compute(plan)
	return nil
}

// Update makes the new binding before it deletes the old one, so that no message is without a route.
func (b bindings) Update(ctx context.Context, plan, state *model) diag.Diagnostics {
	if plan.Object().Equal(state.Object()) {
		return nil
	}
	turn := b.turn(ctx, *plan)
	turn.Lock()
	diags := b.bind(ctx, plan)
	turn.made = turn.made || !diags.HasError()
	turn.Unlock()
	if diags.HasError() {
		return diags
	}
	return b.Delete(ctx, *state)
}

// Delete unbinds, and remembers it for a creation of the same binding.
func (b bindings) Delete(ctx context.Context, state model) diag.Diagnostics {
	turn := b.turn(ctx, state)
	turn.Lock()
	defer turn.Unlock()
	if turn.made {
		return nil
	}
	diags := b.Resource.Delete(ctx, state)
	if !diags.HasError() {
		b.deleted(ctx, state.Vhost.ValueString()).Store(key(b.ID(state)[1:]), true)
	}
	return diags
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
	if strings.Contains(m.RoutingKey.ValueString(), "~") && len(m.Object().Arguments) > 0 {
		diags.Append(unlistable())
	}
	return diags
}

// Compute keeps the identifier while the binding stays the same.
func (m *model) Compute(prior *model) {
	if m.PropertiesKey.IsUnknown() && prior != nil && m.Object().Equal(prior.Object()) {
		m.PropertiesKey = prior.PropertiesKey
	}
	m.ID = entity.ID(m.Identity())
}

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
		vhost, err := s.run.Near(ctx, id[0], nil, nil)
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
	return s.run.Client.Unbind(ctx, id[0], topology.Binding{
		Source: id[1], Destination: id[3], ToExchange: id[2] == toExchange, PropertiesKey: id[4],
	})
}

// All lists the bindings that somebody made. Each queue is also bound to the default exchange.
func (s store) All(ctx context.Context, vhost string) ([][]string, error) {
	all, err := s.run.Near(ctx, vhost, nil, nil)
	var found [][]string
	for _, b := range all.Bindings {
		if b.Source != "" {
			found = append(found, parts(b))
		}
	}
	return found, err
}
