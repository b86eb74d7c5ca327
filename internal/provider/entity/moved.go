package entity

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

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
	_ resource.ResourceWithUpgradeState = (*entity[Model])(nil)
	_ resource.ResourceWithMoveState    = (*entity[Model])(nil)
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
			if req.SourceTypeName == e.TypeName() && slices.Contains(otherVersions, req.SourceSchemaVersion) {
				resp.Diagnostics.Append(e.moved(ctx, req.SourceRawState, &resp.TargetState)...)
			}
		},
	}}
}

// moved sets a state to what another provider has stored. It has no id, so that Read completes it as after an import.
func (e *entity[M]) moved(ctx context.Context, from *tfprotov6.RawState, state *tfsdk.State) diag.Diagnostics {
	of := e.ResourceType.Schema(ctx)
	text, err := readable(ctx, from.JSON, of)
	if err == nil {
		state.Raw, err = tfprotov6.RawState{JSON: text}.Unmarshal(of.Type().TerraformType(ctx))
	}
	if err != nil {
		return diag.Diagnostics{e.Cannot("take over", "The state of another provider cannot be read: "+err.Error()+
			". Remove the resource from the state and import it.")}
	}
	return nil
}

// readable leaves out of a stored state what has another type here, and zeros that stand for missing attributes: in blocks, other
// providers store both alike.
func readable(ctx context.Context, from []byte, of schema.Schema) ([]byte, error) {
	var stored map[string]any
	decoder := json.NewDecoder(bytes.NewReader(from))
	decoder.UseNumber()
	if err := decoder.Decode(&stored); err != nil {
		return nil, err
	}
	delete(stored, "id")
	maps.DeleteFunc(stored, func(name string, value any) bool {
		return of.Blocks[name] == nil && isOther(ctx, value, of.Attributes[name])
	})
	for name, block := range of.Blocks {
		inside, _ := block.GetNestedObject().(schema.NestedBlockObject)
		listed, _ := stored[name].([]any)
		for _, each := range listed {
			content, _ := each.(map[string]any)
			maps.DeleteFunc(content, func(name string, value any) bool {
				attribute := inside.Attributes[name]
				return isOther(ctx, value, attribute) || attribute.IsOptional() && !attribute.IsComputed() && isZero(value)
			})
		}
		stored[name] = append([]any{}, listed...) // blocks are never null
	}
	return json.Marshal(stored)
}

// isOther reports whether a value is not one of the attribute's type, or the schema has no such attribute. Some versions of other
// providers store an empty text for a missing number or flag.
func isOther(ctx context.Context, value any, attribute schema.Attribute) bool {
	if attribute == nil {
		return true
	}
	to := attribute.GetType().TerraformType(ctx)
	return to.Is(tftypes.DynamicPseudoType) || value == "" && !to.Is(tftypes.String)
}

func isZero(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return slices.Contains([]any{nil, "", false, json.Number("0")}, value)
}
