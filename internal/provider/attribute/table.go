package attribute

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Table describes an attribute that has a value of any type for each key. Arguments that the function reads equal are the same to a broker.
func Table(description string, read func(types.Dynamic) topology.Arguments) schema.Attribute {
	return schema.DynamicAttribute{
		Optional: true, MarkdownDescription: description, Validators: []validator.Dynamic{isTable{}},
		PlanModifiers: []planmodifier.Dynamic{keepsForm{read}},
	}
}

// keepsForm plans no change if the configuration only has another form of what the state has. After an import, the state has
// numbers where the configuration can have texts.
type keepsForm struct {
	read func(types.Dynamic) topology.Arguments
}

func (keepsForm) Description(context.Context) string { return "a number can be written as a text" }

func (k keepsForm) MarkdownDescription(ctx context.Context) string { return k.Description(ctx) }

// PlanModifyDynamic compares known values.
func (k keepsForm) PlanModifyDynamic(ctx context.Context, req planmodifier.DynamicRequest, resp *planmodifier.DynamicResponse) {
	if FullyKnown(ctx, req.PlanValue) && !req.StateValue.IsNull() && k.read(req.PlanValue).Equal(k.read(req.StateValue)) {
		resp.PlanValue = req.StateValue
	}
}

// isTable refuses a value without keys.
type isTable struct{}

func (isTable) Description(context.Context) string { return "must have a value for each key" }

func (t isTable) MarkdownDescription(ctx context.Context) string { return t.Description(ctx) }

// ValidateDynamic checks a known value.
func (isTable) ValidateDynamic(_ context.Context, req validator.DynamicRequest, resp *validator.DynamicResponse) {
	value := req.ConfigValue.UnderlyingValue()
	if value == nil || !Known(value) {
		return
	}
	switch value.(type) {
	case types.Object, types.Map:
	default:
		resp.Diagnostics.AddAttributeError(req.Path, "Not a table", "Write a value for each key, such as { key = 10 }. "+
			"If the value is JSON text, leave out jsonencode, or write jsondecode(...) around it.")
	}
}

// CheckNumbers refuses numbers that no broker accepts in an attribute with arguments of a queue or keys of a policy, whose keys have this
// prefix.
func CheckNumbers(name string, arguments topology.Arguments, prefix string) (diags diag.Diagnostics) {
	for _, key := range topology.NotCounts(arguments, prefix) {
		diags.AddAttributeError(path.Root(name), "Not a whole number",
			fmt.Sprintf("In %s, write a whole number of 0 or more for %s, or remove the key.", name, key))
	}
	return diags
}
