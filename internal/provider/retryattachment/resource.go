// Package retryattachment is the resource rabbitmq_retry_attachment.
package retryattachment

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
)

type attachmentResource struct{ session *session.Session }

var (
	_ resource.ResourceWithConfigure      = (*attachmentResource)(nil)
	_ resource.ResourceWithIdentity       = (*attachmentResource)(nil)
	_ resource.ResourceWithImportState    = (*attachmentResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*attachmentResource)(nil)
	_ resource.ResourceWithValidateConfig = (*attachmentResource)(nil)
)

// New makes the resource.
func New() resource.Resource { return &attachmentResource{} }

// Metadata names the resource.
func (*attachmentResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_retry_attachment"
}

// Configure takes over what the provider's Configure made.
func (r *attachmentResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	if req.ProviderData == nil {
		return
	}
	made, ok := req.ProviderData.(*session.Session)
	if !ok {
		resp.Diagnostics.AddError("Unexpected provider data", fmt.Sprintf("This is a bug in the provider: it handed a %T to rabbitmq_retry_attachment.", req.ProviderData))
		return
	}
	r.session = made
}

// requireConnection is an error if the broker cannot be asked at apply.
func (r *attachmentResource) requireConnection() diag.Diagnostics {
	var diags diag.Diagnostics
	if !r.connected() {
		diags.AddError("The provider is not configured", "Its endpoint or credentials are still unknown at apply, so nothing was changed.")
	}
	return diags
}

// connected tells whether the broker can be asked.
func (r *attachmentResource) connected() bool { return r.session != nil && r.session.Client != nil }
