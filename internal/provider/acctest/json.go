package acctest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// planJSON is the part of `terraform show -json` for a plan that checks read.
func (m *module) planJSON(p *modulePlan) (*tfjson.Plan, error) {
	all := &tfjson.Plan{}
	for _, address := range p.addresses() {
		kind, name, _ := strings.Cut(address, ".")
		change := &tfjson.Change{Actions: p.actions(address)}
		all.ResourceChanges = append(all.ResourceChanges, &tfjson.ResourceChange{
			Address: address, Mode: tfjson.ManagedResourceMode, Type: kind, Name: name, Change: change,
		})
		var err error
		if resource := m.state[address]; resource != nil {
			if change.Before, err = resource.core.json(resource.core.Process, kind); err != nil {
				return nil, err
			}
		}
		if change.After, err = p.planned[address].json(p.Process, kind); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// stateJSON is the same for the state.
func (m *module) stateJSON() (*tfjson.State, error) {
	root := &tfjson.StateModule{}
	for _, address := range slices.Sorted(maps.Keys(m.state)) {
		kind, name, _ := strings.Cut(address, ".")
		attributes, err := m.state[address].core.json(m.state[address].core.Process, kind)
		if err != nil {
			return nil, err
		}
		values, _ := attributes.(map[string]any)
		root.Resources = append(root.Resources, &tfjson.StateResource{
			Address: address, Mode: tfjson.ManagedResourceMode, Type: kind, Name: name, AttributeValues: values,
		})
	}
	return &tfjson.State{Values: &tfjson.StateValues{RootModule: root}}, nil
}

// json is the attributes as encoding/json decodes them, with numbers as text and null for unknown values.
func (i instance) json(p *Process, kind string) (decoded any, err error) {
	if i.state == nil {
		return nil, nil
	}
	value, err := p.decode(kind, i.state)
	if err != nil {
		return nil, err
	}
	text, err := ctyjson.Marshal(cty.UnknownAsNull(value), value.Type())
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&decoded)
	return decoded, err
}

// addresses are the addresses of a plan's resources, in order.
func (p *modulePlan) addresses() []string {
	return slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(p.planned)), slices.Collect(maps.Keys(p.destroyed)))))
}

func (p *modulePlan) actions(address string) tfjson.Actions {
	planned, stays := p.planned[address]
	switch {
	case !stays:
		return tfjson.Actions{tfjson.ActionDelete}
	case planned.Replaces:
		return tfjson.Actions{tfjson.ActionDelete, tfjson.ActionCreate}
	case planned.Empty():
		return tfjson.Actions{tfjson.ActionNoop}
	case planned.Refreshed == nil:
		return tfjson.Actions{tfjson.ActionCreate}
	default:
		return tfjson.Actions{tfjson.ActionUpdate}
	}
}

// String lists the planned changes.
func (p *modulePlan) String() string {
	var changes []string
	for _, address := range p.addresses() {
		if actions := p.actions(address); !actions.NoOp() {
			changes = append(changes, fmt.Sprintf("%s %v: %v -> %v", address, actions, p.planned[address].Refreshed, p.planned[address].After))
		}
	}
	return "[" + strings.Join(changes, "\n") + "]"
}
