package entity

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// View describes a data source that shows part of a vhost. M is its model.
type View[M any] struct {
	// Type is the data source's type without the provider's name, such as "dead_letter_audit".
	Type string
	// Schema describes the attributes.
	Schema func() schema.Schema
	// Validate checks the configuration's known values.
	Validate func(context.Context, tfsdk.Config) diag.Diagnostics
	// Vhost is the attribute that names the vhost.
	Vhost func(*M) *types.String
	// Fill sets the computed attributes.
	Fill func(ctx context.Context, run *configured.Provider, m *M, vhost topology.Vhost) diag.Diagnostics
}

// ComputedString describes a computed text of a data source.
func ComputedString(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// source is what all data sources have in common.
type source struct {
	name     string
	provider *configured.Provider
}

func sourceOf(name string) source { return source{name, configured.Unconnected()} }

func (s *source) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + s.name
}

// Configure takes over the provider that the provider's Configure made.
func (s *source) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	resp.Diagnostics.Append(takeOver(&s.provider, req.ProviderData)...)
}

// view is a data source.
type view[M any] struct {
	source
	view View[M]
}

var (
	_ datasource.DataSourceWithConfigure      = (*view[int])(nil)
	_ datasource.DataSourceWithValidateConfig = (*view[int])(nil)
)

// NewDataSource makes a data source from a view. It has no connection until Configure.
func NewDataSource[M any](of View[M]) datasource.DataSource {
	return &view[M]{sourceOf(of.Type), of}
}

func (v *view[M]) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = v.view.Schema()
}

// ValidateConfig checks the configuration's known values.
func (v *view[M]) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	resp.Diagnostics.Append(v.view.Validate(ctx, req.Config)...)
}

// reachForData is reach for an operation that only reads. It also fails if the provider is not configured yet.
func reachForData(ctx context.Context, s *configured.Provider) diag.Diagnostics {
	if !s.Configured() {
		return diag.Diagnostics{notConnectedForData()}
	}
	return reach(ctx, s)
}

// Read lists the vhost, and shows its content.
func (v *view[M]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	defer v.provider.Call()()
	var m M
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	resp.Diagnostics.Append(reachForData(ctx, v.provider)...)
	if resp.Diagnostics.HasError() {
		return
	}
	name := v.view.Vhost(&m)
	if name.IsNull() {
		*name = types.StringValue(defaultVhost)
	}
	vhost, err := v.provider.Fresh(ctx, name.ValueString())
	switch {
	case broker.IsNotFound(err):
		resp.Diagnostics.Append(vhostNotThere(ctx, v.provider, name.ValueString(), ""))
		return
	case err != nil:
		resp.Diagnostics.Append(CannotList(name.ValueString(), "", err))
		return
	}
	resp.Diagnostics.Append(v.view.Fill(ctx, v.provider, &m, vhost)...)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	}
}
