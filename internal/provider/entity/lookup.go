package entity

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
)

// lookup is a data source that finds one resource by its parts.
type lookup[M Model] struct {
	source
	ResourceType
	of func(*configured.Provider) Resource[M]
}

var _ datasource.DataSourceWithConfigure = (*lookup[Model])(nil)

// NewLookup makes the data source. It has the parts of the identity and the attributes Shown.
func (d Definition[M]) NewLookup() datasource.DataSource {
	return &lookup[M]{sourceOf(d.ResourceType.Type), d.ResourceType, d.Of}
}

// Schema describes the data source as the resource is described.
func (l *lookup[M]) Schema(ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := map[string]schema.Attribute{}
	for i, part := range l.Parts {
		optional := l.InVhost() && i == 0
		attributes[part.Name] = schema.StringAttribute{
			Required: !optional, Optional: optional, Computed: optional, MarkdownDescription: part.Description,
		}
	}
	described := l.ResourceType.Schema(ctx).Attributes
	for _, name := range l.Shown {
		attributes[name] = computed(described[name].GetType(), described[name].GetMarkdownDescription())
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: fmt.Sprintf("Finds one %s on the broker. A missing one is an error.", l.Name),
		Attributes:          attributes,
	}
}

func computed(of attr.Type, description string) schema.Attribute {
	if set, isSet := of.(types.SetType); isSet {
		return schema.SetAttribute{Computed: true, ElementType: set.ElemType, MarkdownDescription: description}
	}
	switch of {
	case types.BoolType:
		return schema.BoolAttribute{Computed: true, MarkdownDescription: description}
	case types.Int64Type:
		return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
	case types.DynamicType:
		return schema.DynamicAttribute{Computed: true, MarkdownDescription: description}
	}
	return ComputedString(description)
}

// Read finds the resource.
func (l *lookup[M]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	defer l.provider.Call()()
	values := make([]types.String, len(l.Parts))
	for i, part := range l.Parts {
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(part.Name), &values[i])...)
	}
	if l.InVhost() && values[0].IsNull() {
		values[0] = types.StringValue(defaultVhost)
	}
	resp.Diagnostics.Append(reachForData(ctx, l.provider)...)
	if resp.Diagnostics.HasError() {
		return
	}
	l.provider.LooksUp(l.key(values))
	of := l.ResourceType.Schema(ctx)
	state := tfsdk.State{Schema: of, Raw: tftypes.NewValue(of.Type().TerraformType(ctx), nil)}
	resp.Diagnostics.Append(l.setParts(ctx, &state, values)...)
	var m M
	resp.Diagnostics.Append(state.Get(ctx, &m)...)
	exists, diags := l.of(l.provider).Read(ctx, &m)
	resp.Diagnostics.Append(diags...)
	if !exists && !resp.Diagnostics.HasError() {
		var names []string
		all, _, _ := l.of(l.provider).List(ctx, values[0].ValueString())
		for _, parts := range all {
			names = append(names, parts...) // each kind with a data source has one name
		}
		meant := similar.Hint(values[len(values)-1].ValueString(), slices.Values(names))
		resp.Diagnostics.AddAttributeError(l.LastPath(), l.Title()+" does not exist", l.Describe(values)+" is not on the broker"+meant+".")
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(state.Set(ctx, m)...)
	var all types.Object
	resp.Diagnostics.Append(state.Get(ctx, &all)...)
	for _, name := range slices.Concat(l.partNames(), l.Shown) {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), all.Attributes()[name])...)
	}
}
