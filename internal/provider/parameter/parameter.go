// Package parameter implements rabbitmq_parameter, rabbitmq_shovel and rabbitmq_federation_upstream, each a runtime parameter.
package parameter

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Resource is rabbitmq_parameter.
var Resource = plain.Define(kindOf("", entity.ResourceType{
	Type: "parameter", Name: configured.Parameter,
	Parts: []entity.Part{
		entity.VhostPart,
		{Name: "component", Description: "Component of the parameter.", Example: "federation-upstream-set", Check: ofOther},
		{Name: "name", Description: "Name of the parameter.", Example: "both"},
	},
	Schema: parameterSchema,
}, func(wanted, live any) bool {
	return topology.Arguments{"": wanted}.Equal(topology.Arguments{"": live})
}), func(r plain.Resource[model, any, *model]) entity.Resource[model] { return r })

// kindOf is a kind of parameters of one component, or, without one, of those that no other resource manages.
func kindOf(component string, of entity.ResourceType, equal func(wanted, live any) bool) plain.ResourceType[any] {
	return plain.ResourceType[any]{
		ResourceType: of,
		Existed: func(ctx context.Context, run *configured.Provider, id []string) (bool, error) {
			_, exists, err := store{run, component}.now(ctx, id)
			return exists, err
		},
		Equal: equal,
		Store: func(run *configured.Provider) plain.Store[any] { return store{run, component} },
	}
}

// resources are the resources that manage the parameters of a component.
var resources = map[string]string{
	broker.ShovelComponent: "rabbitmq_shovel", broker.FederationUpstreamComponent: "rabbitmq_federation_upstream",
	"policy": "rabbitmq_policy", "operator_policy": "rabbitmq_operator_policy", "vhost-limits": "rabbitmq_vhost",
}

func parameterSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A runtime parameter of a plugin, such as a federation upstream set. " +
			"Shovels and federation upstreams have resources of their own.",
		Attributes: map[string]schema.Attribute{
			"name":      attribute.Name("parameter"),
			"vhost":     entity.Vhost("parameter"),
			"component": attribute.Text("Component, such as `federation-upstream-set`. Changing it replaces the parameter."),
			"value":     schema.DynamicAttribute{Required: true, MarkdownDescription: "Value, such as `[{ upstream = \"north\" }]`."},
			"id":        attribute.ComputedString("`<vhost>/<component>/<name>`, percent-encoded, as an import takes it."),
		},
	}
}

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	plain.NamedInVhost
	Component types.String  `tfsdk:"component"`
	Value     types.Dynamic `tfsdk:"value"`
}

func (m model) Identity() []types.String { return []types.String{m.Vhost, m.Component, m.Name} }

func (m model) Validate(context.Context) diag.Diagnostics {
	return report.Errors(ofOther(m.Component.ValueString()))
}

// ofOther finds that another resource manages a component.
func ofOther(component string) []problem.Problem {
	if other := resources[component]; other != "" {
		return []problem.Problem{otherResource(component, other)}
	}
	return nil
}

func (m *model) Compute() { m.ID = entity.ID(m.Identity()) }

func (m *model) Object() any { return attribute.Decoded(m.Value) }

func (m *model) Show(live any) { m.Value = types.DynamicValue(attribute.Encoded(live)) }

// store is the parameters of one component, or, without one, those that no other resource manages.
type store struct {
	run       *configured.Provider
	component string
}

// of is the parameter with an id, which has the component unless the store has it.
func (s store) of(id []string) broker.ParameterID {
	if s.component == "" {
		return broker.ParameterID{Vhost: id[0], Component: id[1], Name: id[2]}
	}
	return broker.ParameterID{Vhost: id[0], Component: s.component, Name: id[1]}
}

// now asks the broker for a parameter.
func (s store) now(ctx context.Context, id []string) (any, bool, error) {
	return s.run.Client.Parameter(ctx, s.of(id))
}

func (s store) Live(ctx context.Context, id []string) (any, bool, error) {
	all, err := configured.Once(ctx, s.run, "parameters", s.run.Client.Parameters)
	value, exists := all[s.of(id)]
	return value, exists, err
}

func (s store) Put(ctx context.Context, id []string, value any) (bool, error) {
	created, err := s.run.Client.PutParameter(ctx, s.of(id), value)
	return created, explained(s.of(id).Component, err)
}

func (s store) Delete(ctx context.Context, id []string) error {
	return s.run.Client.DeleteParameter(ctx, s.of(id))
}

func (s store) All(ctx context.Context, vhost string) ([][]string, error) {
	all, err := configured.Once(ctx, s.run, "parameters", s.run.Client.Parameters)
	var found [][]string
	for id := range all {
		switch {
		case id.Vhost != vhost:
		case s.component == "" && resources[id.Component] == "":
			found = append(found, []string{id.Component, id.Name})
		case s.component == id.Component:
			found = append(found, []string{id.Name})
		}
	}
	slices.SortFunc(found, func(a, b []string) int { return strings.Compare(strings.Join(a, "/"), strings.Join(b, "/")) })
	return found, err
}
