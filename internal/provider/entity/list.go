package entity

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// listing lists the resources of a kind in a vhost, for terraform query.
type listing[M, S any] struct{ entity[M, S] }

var _ list.ListResourceWithConfigure = (*listing[int, int])(nil)

// NewList makes the list resource of a kind.
func NewList[M, S any](kind Kind[M, S]) list.ListResource {
	return &listing[M, S]{newEntity(kind)}
}

// listModel is the configuration of a list block.
type listModel struct {
	Vhost types.String `tfsdk:"vhost"`
}

// ListResourceConfigSchema describes a list block.
func (l *listing[M, S]) ListResourceConfigSchema(
	_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists what the broker has in a virtual host, whoever made it, for `terraform query`.",
		Attributes: map[string]schema.Attribute{
			"vhost": schema.StringAttribute{Optional: true, MarkdownDescription: "Virtual host. Default: `/`."},
		},
	}
}

// List reads the vhost, and each resource from it.
func (l *listing[M, S]) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	defer l.provider.Call()()
	var config listModel
	diags := req.Config.Get(ctx, &config)
	diags.Append(reachForData(ctx, l.provider)...)
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	if config.Vhost.IsNull() {
		config.Vhost = types.StringValue(defaultVhost)
	}
	vhost, err := l.provider.Fresh(ctx, config.Vhost.ValueString())
	if err != nil {
		stream.Results = list.ListResultsStreamDiagnostics(diag.Diagnostics{cannotList(config.Vhost.ValueString(), "", err)})
		return
	}
	found := l.kind.Found(vhost.Topology)
	if limit := int(req.Limit); limit > 0 && len(found) > limit {
		found = found[:limit]
	}
	stream.Results = func(push func(list.ListResult) bool) {
		for _, parts := range found {
			if !push(l.result(ctx, req, slices.Concat([]string{config.Vhost.ValueString()}, parts), vhost.Topology)) {
				return
			}
		}
	}
}

// result shows the resource of this identity. What cannot be read is listed all the same, with a warning: its name is
// what somebody needs who repairs it.
func (l *listing[M, S]) result(ctx context.Context, req list.ListRequest, parts []string, vhost topology.Topology) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = strings.Join(parts[1:], "/")
	values := make([]types.String, len(parts))
	for i, part := range parts {
		values[i] = types.StringValue(part)
	}
	result.Diagnostics.Append(l.setParts(ctx, result.Identity, values)...)
	if req.IncludeResource {
		result.Diagnostics.Append(l.include(ctx, result.Resource, values, vhost)...)
	}
	return result
}

func (l *listing[M, S]) include(
	ctx context.Context, resource *tfsdk.Resource, values []types.String, vhost topology.Topology,
) diag.Diagnostics {
	diags := l.setParts(ctx, resource, values)
	var m M
	diags.Append(resource.Get(ctx, &m)...)
	if diags.HasError() {
		return diags
	}
	if err := l.kind.Recover(&m, vhost); err != nil {
		problem := l.cannotImport(l.key(m), err)
		return diag.Diagnostics{diag.NewWarningDiagnostic(problem.Summary(), problem.Detail())}
	}
	_, more := l.refresh(ctx, &m, vhost)
	diags.Append(more...)
	if !diags.HasError() {
		diags.Append(resource.Set(ctx, m)...)
	}
	return diags
}
