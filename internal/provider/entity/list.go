package entity

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// listing lists the resources of a kind, for terraform query.
type listing[M Model] struct{ *entity[M] }

var _ list.ListResourceWithConfigure = (*listing[Model])(nil)

// NewList makes the list resource.
func (d Definition[M]) NewList() list.ListResource { return &listing[M]{d.entity()} }

// ListResourceConfigSchema describes a list block.
func (l *listing[M]) ListResourceConfigSchema(
	_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse,
) {
	if !l.InVhost() {
		resp.Schema = schema.Schema{MarkdownDescription: "Lists the broker's resources, managed by Terraform or not, for `terraform query`."}
		return
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the resources in a virtual host, managed by Terraform or not, for `terraform query`.",
		Attributes: map[string]schema.Attribute{
			"vhost": schema.StringAttribute{Optional: true, MarkdownDescription: "Virtual host. Default: `/`."},
		},
	}
}

// List finds the resources, and reads whole resources if the request includes them.
func (l *listing[M]) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	defer l.provider.Call()()
	vhost, diags := l.vhost(ctx, req.Config)
	diags.Append(reachForData(ctx, l.provider)...)
	var found [][]string
	var fill func(*M) diag.Diagnostics
	if !diags.HasError() {
		var more diag.Diagnostics
		found, fill, more = l.of(l.provider).List(ctx, vhost)
		diags.Append(more...)
	}
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	if limit := int(req.Limit); limit > 0 && len(found) > limit {
		found = found[:limit]
	}
	stream.Results = func(push func(list.ListResult) bool) {
		for _, parts := range found {
			result := l.result(ctx, req, vhost, parts, fill)
			// A warning needs a result to be shown.
			result.Diagnostics.Append(diags...)
			diags = nil
			if !push(result) {
				return
			}
		}
	}
}

// vhost is the vhost of a list block, "" if the kind has none.
func (l *listing[M]) vhost(ctx context.Context, config tfsdk.Config) (string, diag.Diagnostics) {
	if !l.InVhost() {
		return "", nil
	}
	var vhost types.String
	diags := config.GetAttribute(ctx, path.Root("vhost"), &vhost)
	if vhost.IsNull() {
		return defaultVhost, diags
	}
	return vhost.ValueString(), diags
}

// result describes a resource. A resource that cannot be read is also listed, with a warning, since a user needs its name to
// repair it.
func (l *listing[M]) result(
	ctx context.Context, req list.ListRequest, vhost string, parts []string, fill func(*M) diag.Diagnostics,
) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = strings.Join(parts, "/")
	if l.InVhost() {
		parts = slices.Concat([]string{vhost}, parts)
	}
	values := make([]types.String, len(parts))
	for i, part := range parts {
		values[i] = types.StringValue(part)
	}
	result.Diagnostics.Append(l.setParts(ctx, result.Identity, values)...)
	if req.IncludeResource {
		result.Diagnostics.Append(l.include(ctx, result.Resource, values, fill)...)
	}
	return result
}

func (l *listing[M]) include(
	ctx context.Context, resource *tfsdk.Resource, values []types.String, fill func(*M) diag.Diagnostics,
) diag.Diagnostics {
	diags := l.setParts(ctx, resource, values)
	var m M
	diags.Append(resource.Get(ctx, &m)...)
	if diags.HasError() {
		return diags
	}
	more := fill(&m)
	if !more.HasError() {
		return append(append(diags, more...), resource.Set(ctx, m)...)
	}
	for _, problem := range more {
		diags.AddWarning(problem.Summary(), problem.Detail())
	}
	return diags
}
