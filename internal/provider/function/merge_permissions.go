// Package function implements the provider's functions.
package function

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

// mergePermissions is the function merge_permissions.
type mergePermissions struct{}

var _ function.Function = mergePermissions{}

// NewMergePermissions makes the function merge_permissions.
func NewMergePermissions() function.Function { return mergePermissions{} }

// Metadata names the function.
func (mergePermissions) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "merge_permissions"
}

// Definition describes the function.
func (mergePermissions) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Merge permissions in a vhost",
		MarkdownDescription: "Merges permissions into one set: a broker user has one set in a vhost. " +
			"A merged pattern matches every name that any pattern matches.",
		VariadicParameter: function.ObjectParameter{
			Name: "permissions", AttributeTypes: attribute.PermissionsType,
			MarkdownDescription: "`worker_permissions`, `publisher_permissions`, or an element of `operator_permissions`, " +
				"of pipelines and delayed exchanges in one vhost.",
		},
		Return: function.ObjectReturn{AttributeTypes: attribute.PermissionsType},
	}
}

// Run merges the permissions.
func (mergePermissions) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var given []attribute.Patterns
	if resp.Error = req.Arguments.Get(ctx, &given); resp.Error != nil {
		return
	}
	all := make([]pipeline.Permissions, len(given))
	for i, p := range given {
		for _, field := range []struct {
			name  string
			value types.String
		}{{"configure", p.Configure}, {"write", p.Write}, {"read", p.Read}} {
			if field.value.IsNull() {
				resp.Error = function.NewArgumentFuncError(int64(i), fmt.Sprintf(
					`%s of argument %d is null. Write a pattern, or "^$", which matches no name.`, field.name, i+1))
				return
			}
		}
		all[i] = pipeline.Permissions{Configure: p.Configure.ValueString(), Write: p.Write.ValueString(), Read: p.Read.ValueString()}
	}
	resp.Error = resp.Result.Set(ctx, attribute.PermissionsValue(pipeline.MergePermissions(all)))
}
