// Package deadletteraudit is the data source rabbitmq_dead_letter_audit.
package deadletteraudit

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
)

type auditDataSource struct{ session *session.Session }

var (
	_ datasource.DataSourceWithConfigure      = (*auditDataSource)(nil)
	_ datasource.DataSourceWithValidateConfig = (*auditDataSource)(nil)
)

// New makes the data source.
func New() datasource.DataSource { return &auditDataSource{} }

// Metadata names the data source.
func (*auditDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_dead_letter_audit"
}

// Configure takes over what the provider's Configure made.
func (d *auditDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	if req.ProviderData == nil {
		return
	}
	made, ok := req.ProviderData.(*session.Session)
	if !ok {
		resp.Diagnostics.AddError("Unexpected provider data", fmt.Sprintf("This is a bug in the provider: it handed a %T to rabbitmq_dead_letter_audit.", req.ProviderData))
		return
	}
	d.session = made
}
