package retrypipeline

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// ImportState takes an identity, or an id of the form <vhost>/<name>, both percent-encoded. Read
// finds the rest on the broker.
func (*pipelineResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var imported identity
	if req.ID != "" {
		parts, err := attribute.ParseID(req.ID, "vhost", "name")
		if err != nil {
			resp.Diagnostics.AddError("Invalid import id", err.Error())
			return
		}
		imported = identity{Vhost: types.StringValue(parts[0]), Name: types.StringValue(parts[1])}
	} else {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &imported)...)
		if imported.Vhost.IsNull() {
			imported.Vhost = types.StringValue("/")
		}
	}
	resp.Diagnostics.Append(report.Errors(workerconfig.CheckName(imported.Name.ValueString()))...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, imported)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("vhost"), imported.Vhost)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), imported.Name)...)
}
