package user

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
)

const wouldLockOut = "Terraform runs as the user %q, and could not log in, or change users, afterwards."

func planned(m model) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(path.Root("name"), "Terraform runs as this user", fmt.Sprintf(
		wouldLockOut+" The apply will refuse this change. Run Terraform as another administrator.", m.Name.ValueString()))
}

func applied(m model) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("name"), "Terraform runs as this user", fmt.Sprintf(
		wouldLockOut+" Nothing of this resource was changed. Run Terraform as another administrator.", m.Name.ValueString()))
}

// noHash does not repeat the value, which is a secret.
func noHash() diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("password_hash"), "Not a password hash",
		"Set password_hash to the Base64 text that `rabbitmqctl hash_password` prints, or set password or password_wo to a password.")
}

func permissionExists(m model, vhost string, live broker.Permission) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("permissions").AtMapKey(vhost), "Permissions exist already", fmt.Sprintf(
		"User %q already has other permissions in virtual host %q, and they were not changed: configure = %q, write = %q, read = %q. "+
			"If no other resource sets them, apply these values first, and then change them.",
		m.Name.ValueString(), vhost, live.Configure, live.Write, live.Read))
}
