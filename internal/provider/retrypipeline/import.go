package retrypipeline

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ImportState takes an identity, or an id of the form <vhost>/<name>, both percent-encoded. Read
// finds the rest on the broker.
func (*pipelineResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var imported identity
	if req.ID != "" {
		vhost, name, err := parseID(req.ID)
		if err != nil {
			resp.Diagnostics.AddError("Invalid import id", err.Error())
			return
		}
		imported = identity{Vhost: types.StringValue(vhost), Name: types.StringValue(name)}
	} else {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &imported)...)
		if imported.Vhost.IsNull() {
			imported.Vhost = types.StringValue("/")
		}
	}
	resp.Diagnostics.Append(errorsOf(topology.CheckName(imported.Name.ValueString()))...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, imported)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("vhost"), imported.Vhost)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), imported.Name)...)
}

// parseID splits an id into vhost and name.
func parseID(id string) (vhost, name string, err error) {
	parts := strings.Split(id, "/")
	if len(parts) == 2 {
		vhost, vhostErr := url.PathUnescape(parts[0])
		name, nameErr := url.PathUnescape(parts[1])
		if vhostErr == nil && nameErr == nil && vhost != "" && name != "" {
			return vhost, name, nil
		}
	}
	return "", "", fmt.Errorf("%q is not of the form <vhost>/<name>, both percent-encoded: the pipeline \"orders\" in the vhost \"/\" is %%2F/orders", id)
}
