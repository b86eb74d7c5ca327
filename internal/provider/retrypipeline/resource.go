// Package retrypipeline is the resource rabbitmq_retry_pipeline.
package retrypipeline

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
)

type pipelineResource struct{ session *session.Session }

var (
	_ resource.ResourceWithConfigure      = (*pipelineResource)(nil)
	_ resource.ResourceWithIdentity       = (*pipelineResource)(nil)
	_ resource.ResourceWithImportState    = (*pipelineResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*pipelineResource)(nil)
	_ resource.ResourceWithValidateConfig = (*pipelineResource)(nil)
)

// New makes the resource.
func New() resource.Resource { return &pipelineResource{} }

// Metadata names the resource.
func (*pipelineResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_retry_pipeline"
}

// Configure takes over what the provider's Configure made.
func (r *pipelineResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	if req.ProviderData == nil {
		return
	}
	made, ok := req.ProviderData.(*session.Session)
	if !ok {
		resp.Diagnostics.AddError("Unexpected provider data", fmt.Sprintf("This is a bug in the provider: it handed a %T to rabbitmq_retry_pipeline.", req.ProviderData))
		return
	}
	r.session = made
}

// requireConnection is an error if the broker cannot be asked at apply.
func (r *pipelineResource) requireConnection() diag.Diagnostics {
	var diags diag.Diagnostics
	if !r.connected() {
		diags.AddError("The provider is not configured", "Its endpoint or credentials are still unknown at apply, so nothing was changed.")
	}
	return diags
}

// connected tells whether the broker can be asked.
func (r *pipelineResource) connected() bool { return r.session != nil && r.session.Client != nil }
