package entity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// commonVersion is the schema version of resources that other RabbitMQ providers have, too. Terraform lets a provider convert a
// state if its version is lower. Other providers count from 0.
const commonVersion = 1000

// otherVersions are the versions of other providers' states.
var otherVersions = []int64{0, 1}

var (
	_ resource.ResourceWithUpgradeState = (*entity[int])(nil)
	_ resource.ResourceWithMoveState    = (*entity[int])(nil)
)

// UpgradeState converts the states of other RabbitMQ providers.
func (e *entity[M]) UpgradeState(ctx context.Context) map[int64]resource.StateUpgrader {
	if !e.Common {
		return nil
	}
	upgraders := map[int64]resource.StateUpgrader{}
	for _, version := range otherVersions {
		upgraders[version] = resource.StateUpgrader{
			StateUpgrader: func(_ context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
				resp.Diagnostics.Append(e.moved(ctx, req.RawState, &resp.State)...)
			},
		}
	}
	return upgraders
}

// MoveState converts them, too. Terraform calls it if a moved block or a new count meets another provider.
func (e *entity[M]) MoveState(ctx context.Context) []resource.StateMover {
	if !e.Common {
		return nil
	}
	return []resource.StateMover{{
		StateMover: func(_ context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
			if req.SourceTypeName == e.ResourceType() && slices.Contains(otherVersions, req.SourceSchemaVersion) {
				resp.Diagnostics.Append(e.moved(ctx, req.SourceRawState, &resp.TargetState)...)
			}
		},
	}}
}

// moved sets a state to what another provider has stored. It has no id, so that Read completes it as after an import.
func (e *entity[M]) moved(ctx context.Context, from *tfprotov6.RawState, state *tfsdk.State) diag.Diagnostics {
	var stored map[string]any
	decoder := json.NewDecoder(bytes.NewReader(from.JSON))
	decoder.UseNumber()
	err := decoder.Decode(&stored)
	if err == nil {
		delete(stored, "id")
		of := e.Kind.Schema(ctx)
		state.Raw, err = movedObject(ctx, stored, of.Attributes, of.Blocks)
	}
	if err != nil {
		return diag.Diagnostics{e.Cannot("take over", "The state of another provider cannot be read: "+err.Error()+
			". Remove the resource from the state and import it.")}
	}
	return nil
}

// movedObject has those values that the schema has. The rest is null.
func movedObject(
	ctx context.Context, stored map[string]any, attributes map[string]schema.Attribute, blocks map[string]schema.Block,
) (tftypes.Value, error) {
	values, kinds := map[string]tftypes.Value{}, map[string]tftypes.Type{}
	for name, attribute := range attributes {
		kinds[name] = attribute.GetType().TerraformType(ctx)
		value, err := movedValue(stored[name], kinds[name])
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("%s: %w", name, err)
		}
		values[name] = value
	}
	for name, block := range blocks {
		kinds[name] = block.Type().TerraformType(ctx)
		var elements []tftypes.Value
		listed, _ := stored[name].([]any)
		for _, each := range listed {
			content, _ := each.(map[string]any)
			inside, _ := block.GetNestedObject().(schema.NestedBlockObject)
			value, err := movedObject(ctx, withoutZeros(content, inside.Attributes), inside.Attributes, nil)
			if err != nil {
				return tftypes.Value{}, fmt.Errorf("%s: %w", name, err)
			}
			elements = append(elements, value)
		}
		values[name] = tftypes.NewValue(kinds[name], elements)
	}
	return tftypes.NewValue(tftypes.Object{AttributeTypes: kinds}, values), nil
}

// withoutZeros leaves out zeros that stand for missing attributes: in blocks, other providers store both alike.
func withoutZeros(stored map[string]any, attributes map[string]schema.Attribute) map[string]any {
	rest := map[string]any{}
	for name, value := range stored {
		if attribute, has := attributes[name]; has && (!attribute.IsOptional() || attribute.IsComputed() || !isZero(value)) {
			rest[name] = value
		}
	}
	return rest
}

func isZero(value any) bool {
	switch value := value.(type) {
	case string:
		return value == ""
	case json.Number:
		return value == "0"
	case bool:
		return !value
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil
}

// movedValue reads a stored value as a type. Other versions of other providers store numbers and flags as text.
func movedValue(stored any, to tftypes.Type) (tftypes.Value, error) {
	if stored == nil {
		return tftypes.NewValue(to, nil), nil
	}
	switch to := to.(type) {
	case tftypes.List:
		return movedElements(stored, to, to.ElementType)
	case tftypes.Set:
		return movedElements(stored, to, to.ElementType)
	case tftypes.Map:
		return movedMap(stored, to)
	}
	text := fmt.Sprint(stored)
	switch {
	case to.Is(tftypes.String):
		return tftypes.NewValue(to, text), nil
	case text == "":
		return tftypes.NewValue(to, nil), nil
	case to.Is(tftypes.Bool):
		flag, err := strconv.ParseBool(text)
		return tftypes.NewValue(to, flag), err
	case to.Is(tftypes.Number):
		number, _, err := big.ParseFloat(text, 10, 512, big.ToNearestEven)
		return tftypes.NewValue(to, number), err
	}
	return tftypes.NewValue(to, nil), nil // of another shape: Read finds it
}

func movedElements(stored any, to, of tftypes.Type) (tftypes.Value, error) {
	var elements []tftypes.Value
	listed, _ := stored.([]any)
	for _, each := range listed {
		value, err := movedValue(each, of)
		if err != nil {
			return tftypes.Value{}, err
		}
		elements = append(elements, value)
	}
	return tftypes.NewValue(to, elements), nil
}

func movedMap(stored any, to tftypes.Map) (tftypes.Value, error) {
	elements := map[string]tftypes.Value{}
	entries, _ := stored.(map[string]any)
	for key, each := range entries {
		value, err := movedValue(each, to.ElementType)
		if err != nil {
			return tftypes.Value{}, err
		}
		elements[key] = value
	}
	return tftypes.NewValue(to, elements), nil
}
