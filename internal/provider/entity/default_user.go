package entity

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// defaultUser is a data source that shows the user that the provider logs in as.
type defaultUser struct{ source }

var _ datasource.DataSourceWithConfigure = (*defaultUser)(nil)

// NewDefaultUser makes the data source. It has no connection until Configure.
func NewDefaultUser() datasource.DataSource { return &defaultUser{sourceOf("default_user")} }

type defaultUserModel struct {
	Name types.String `tfsdk:"name"`
	Tags []string     `tfsdk:"tags"`
}

// Schema describes the data source.
func (*defaultUser) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Shows the user that the provider logs in as.",
		Attributes: map[string]schema.Attribute{
			"name": ComputedString("Name of the user."),
			"tags": schema.SetAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Tags of the user."},
		},
	}
}

// Read asks the broker who the user is.
func (d *defaultUser) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	defer d.provider.Call()()
	resp.Diagnostics.Append(reachForData(ctx, d.provider)...)
	if resp.Diagnostics.HasError() {
		return
	}
	user, err := d.provider.Reach(ctx)
	if err != nil {
		resp.Diagnostics.AddError("Cannot read the user", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, defaultUserModel{types.StringValue(user.Name), user.Tags})...)
}
