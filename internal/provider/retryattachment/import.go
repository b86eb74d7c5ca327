package retryattachment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

// identity is what tells one attachment from another.
type identity struct {
	Vhost    types.String `tfsdk:"vhost"`
	Pipeline types.String `tfsdk:"pipeline"`
	Queue    types.String `tfsdk:"queue"`
}

// IdentitySchema describes the identity.
func (*attachmentResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"vhost":    identityschema.StringAttribute{OptionalForImport: true, Description: "Virtual host. Default: \"/\"."},
			"pipeline": identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the pipeline."},
			"queue":    identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the attached queue."},
		},
	}
}

func (m model) identity() identity {
	return identity{Vhost: m.Vhost, Pipeline: m.Pipeline, Queue: m.Queue}
}

// ImportState takes an identity, or an id of the form <vhost>/<pipeline>/<queue>, all percent-encoded.
// Read finds the rest on the broker.
func (*attachmentResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var imported identity
	if req.ID != "" {
		parts, err := attribute.ParseID(req.ID, "vhost", "pipeline", "queue")
		if err != nil {
			resp.Diagnostics.AddError("Invalid import id", err.Error())
			return
		}
		imported = identity{Vhost: types.StringValue(parts[0]), Pipeline: types.StringValue(parts[1]), Queue: types.StringValue(parts[2])}
	} else {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &imported)...)
		if imported.Vhost.IsNull() {
			imported.Vhost = types.StringValue("/")
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, imported)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("vhost"), imported.Vhost)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("pipeline"), imported.Pipeline)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("queue"), imported.Queue)...)
}
