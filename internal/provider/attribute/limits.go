package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Limit describes a limit, null for none.
func Limit(description string) schema.Attribute {
	return schema.Int64Attribute{
		Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)}, MarkdownDescription: description,
	}
}

// Limits are the known limits, by the broker's names.
func Limits(of map[string]types.Int64) map[string]int64 {
	limits := map[string]int64{}
	for limit, value := range of {
		if Known(value) {
			limits[limit] = value.ValueInt64()
		}
	}
	return limits
}

// LimitValue is a limit, null if it is not set.
func LimitValue(limits map[string]int64, limit string) types.Int64 {
	value, isSet := limits[limit]
	if !isSet {
		return types.Int64Null()
	}
	return types.Int64Value(value)
}
