package report

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
)

// MissingVhost says that a vhost cannot be seen.
func MissingVhost(vhost string) string {
	return fmt.Sprintf("Vhost %q does not exist, or the provider's user has no permissions in it.", vhost)
}

// ReadFailed tells a vhost that is gone from one that only cannot be seen: a user without access
// gets the same answer, and taking that for gone would plan to create everything anew.
func ReadFailed(ctx context.Context, client *broker.Client, vhost string, err error) (gone bool, diags diag.Diagnostics) {
	if !broker.IsNotFound(err) {
		diags.AddError("Cannot read the vhost", fmt.Sprintf("Vhost %q could not be listed: %s", vhost, err))
		return false, diags
	}
	if gone, err := client.VhostGone(ctx, vhost); gone && err == nil {
		return true, nil
	}
	diags.AddAttributeError(path.Root("vhost"), "Vhost cannot be seen", MissingVhost(vhost)+
		" The resource is kept in the state. Give the user permissions in the vhost; if the vhost is really gone, remove the resource from the state: terraform state rm.")
	return false, diags
}
