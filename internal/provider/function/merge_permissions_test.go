package function_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	own "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/function"
)

// merge calls the function as Terraform does, with one tuple of all arguments.
func merge(t *testing.T, arguments ...attr.Value) (attr.Value, *function.FuncError) {
	t.Helper()
	kinds := make([]attr.Type, len(arguments))
	for i := range kinds {
		kinds[i] = types.ObjectType{AttrTypes: attribute.PermissionsType}
	}
	resp := function.RunResponse{Result: function.NewResultData(types.ObjectUnknown(attribute.PermissionsType))}
	own.NewMergePermissions().Run(t.Context(), function.RunRequest{
		Arguments: function.NewArgumentsData([]attr.Value{types.TupleValueMust(kinds, arguments)}),
	}, &resp)
	return resp.Result.Value(), resp.Error
}

func patterns(configure, write, read types.String) types.Object {
	return types.ObjectValueMust(attribute.PermissionsType, map[string]attr.Value{"configure": configure, "write": write, "read": read})
}

// A null is the user's mistake, so the error names the argument and the field.
func TestNullPatternIsAnErrorOfItsArgument(t *testing.T) {
	t.Parallel()
	a, null := types.StringValue("^a$"), types.StringNull()
	if merged, err := merge(t, patterns(a, a, a), patterns(a, a, a)); err != nil || !merged.Equal(patterns(a, a, a)) {
		t.Errorf("got %v, %v", merged, err)
	}
	for field, bad := range map[string]types.Object{
		"configure": patterns(null, a, a), "write": patterns(a, null, a), "read": patterns(a, a, null),
	} {
		_, err := merge(t, patterns(a, a, a), bad)
		if err == nil || err.FunctionArgument == nil || *err.FunctionArgument != 1 || !strings.Contains(err.Text, field+" of argument 2 is null") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
