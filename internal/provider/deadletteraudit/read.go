package deadletteraudit

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const defaultVhost = "/"

// Read audits the vhost.
func (d *auditDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	var ignored []string
	resp.Diagnostics.Append(m.Ignore.ElementsAs(ctx, &ignored, false)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if d.session == nil || d.session.Client == nil {
		resp.Diagnostics.AddError("The provider is not configured", "Its endpoint or credentials are not known yet, so there is nothing to audit. If they come from a resource of this configuration, let the data source depend on it: depends_on = [...].")
		return
	}
	if m.Vhost.IsNull() {
		m.Vhost = types.StringValue(defaultVhost)
	}
	vhost, err := d.list(ctx, m.Vhost.ValueString())
	if broker.IsNotFound(err) {
		resp.Diagnostics.AddAttributeError(path.Root("vhost"), "Vhost does not exist",
			fmt.Sprintf("Vhost %s does not exist, or the provider's user has no permissions in it.", m.Vhost))
		return
	}
	if err != nil {
		resp.Diagnostics.AddError("Cannot read the vhost", fmt.Sprintf("Vhost %s could not be listed: %s", m.Vhost, err))
		return
	}
	m.fill(audit.Without(audit.Vhost(vhost), ignored))
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// list reads the vhost, anew if this run has changed something: an audit after an apply is about what
// the apply has made.
func (d *auditDataSource) list(ctx context.Context, vhost string) (topology.Vhost, error) {
	if d.session.Stale() {
		return d.session.Client.List(ctx, vhost)
	}
	return d.session.Listing(ctx, vhost)
}
