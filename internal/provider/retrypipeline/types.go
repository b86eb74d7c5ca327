package retrypipeline

import (
	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// The types of the nested attributes.
var (
	workQueueType = map[string]attr.Type{
		"type":           types.StringType,
		"declare":        types.BoolType,
		"arguments_json": jsontypes.NormalizedType{},
		"attach":         types.StringType,

		"dead_letter_strategy": types.StringType,
		"policy_definition":    jsontypes.NormalizedType{},
		"max_attempts":         types.Int64Type,
		"take_over_from":       types.StringType,
		"failed_queue":         types.StringType,
		"declare_failed_queue": types.BoolType,
	}
	retiredType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"delay":   types.StringType,
		"drained": types.BoolType,
	}}
	detachedType = types.ObjectType{AttrTypes: map[string]attr.Type{"drained": types.BoolType}}
)
