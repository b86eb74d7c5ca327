package retrypipeline

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// identity is what tells one pipeline from another.
type identity struct {
	Vhost types.String `tfsdk:"vhost"`
	Name  types.String `tfsdk:"name"`
}

// IdentitySchema describes the identity.
func (*pipelineResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"vhost": identityschema.StringAttribute{OptionalForImport: true, Description: "Virtual host. Default: \"/\"."},
			"name":  identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the pipeline."},
		},
	}
}

func (m model) identity() identity { return identity{Vhost: m.Vhost, Name: m.Name} }
