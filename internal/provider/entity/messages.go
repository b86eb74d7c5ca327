package entity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
)

// vhostPath is the attribute vhost.
var vhostPath = path.Root(VhostPart.Name)

// The provider and its connection.

func unexpectedProviderData(data any) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Unexpected provider data",
		fmt.Sprintf("This is a bug in the provider: its resources and data sources received a %T.", data))
}

func notConnected() diag.Diagnostic {
	return diag.NewErrorDiagnostic("The provider is not configured",
		"Its endpoint or credentials are still unknown at apply, so nothing of this resource was changed. "+
			"Create what they come from first, with terraform apply -target.")
}

func notConnectedForData() diag.Diagnostic {
	return diag.NewErrorDiagnostic("The provider is not configured",
		"Its endpoint or credentials are not known yet, so nothing can be read. "+
			"If they come from a resource of this configuration, make the data source depend on it: depends_on = [...].")
}

func unfamiliarBroker(name string) diag.Diagnostic {
	text := product.Unfamiliar(name)
	return diag.NewWarningDiagnostic("The broker does not call itself RabbitMQ", strings.ToUpper(text[:1])+text[1:]+".")
}

// unreached is the error of a call that asked for the provider's user.
func unreached(_ broker.User, err error) (diags diag.Diagnostics) {
	switch {
	case err == nil:
	case broker.IsUnauthorized(err):
		diags.AddError("RabbitMQ refused the user",
			err.Error()+".\n\nThe user also needs one of the tags management, policymaker, monitoring or administrator.")
	case product.IsOtherError(err):
		diags.AddError("The broker is not RabbitMQ",
			"The provider block, or RABBITMQ_ENDPOINT, names another broker. Set it to RabbitMQ's management API: "+err.Error()+".")
	case broker.IsProxys(err):
		diags.AddError("The proxy does not lead to RabbitMQ", err.Error()+".")
	default:
		diags.AddError("RabbitMQ's management API cannot be reached", notReachedDetail+err.Error()+".")
	}
	return diags
}

func planNotCompared(err error) diag.Diagnostic {
	return diag.NewWarningDiagnostic("The plan was not compared with the broker",
		"RabbitMQ's management API cannot be reached, so the plan was made without it. "+
			"Apply needs it, and makes the checks that this plan left out. "+notReachedDetail+err.Error()+".")
}

func planNotConfigured() diag.Diagnostic {
	return diag.NewWarningDiagnostic("The plan was not compared with the broker",
		"The endpoint or the credentials in the provider block are not known yet. So this plan cannot tell whether a replacement, a "+
			"destroy or the removal of a queue loses messages. First create the resource that they come from, with terraform apply -target.")
}

const notReachedDetail = "Check the endpoint in the provider block, or RABBITMQ_ENDPOINT. It is the URL of the management API " +
	"(port 15672, or 15671 with TLS), not of AMQP. Also check that the plugin rabbitmq_management is enabled.\n\n"

// The vhost.

func missingVhost(ctx context.Context, run *configured.Provider, vhost string) string {
	names, _ := run.Client.Vhosts(ctx)
	return fmt.Sprintf("Vhost %q%s does not exist, or the provider's user has no permissions in it.",
		vhost, similar.Hint(vhost, slices.Values(names)))
}

// refersToVhost is the consequence if nothing was created in a vhost.
const refersToVhost = " Nothing of this resource was changed. " +
	"If this configuration creates the vhost, refer to it, as in vhost = rabbitmq_vhost.NAME.name."

// vhostNotThere is the error if the vhost does not exist. The text consequence follows.
func vhostNotThere(ctx context.Context, run *configured.Provider, vhost, consequence string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(vhostPath, "Vhost does not exist", missingVhost(ctx, run, vhost)+consequence)
}

// VhostNotThereYet is a plan's warning that the vhost does not exist. It comes once, and not if the same plan creates the vhost.
func VhostNotThereYet(ctx context.Context, run *configured.Provider, vhost string) diag.Diagnostics {
	created := run.HasPlanned(configured.Key{Kind: configured.Vhost, Name: vhost}) && VhostGone(ctx, run, vhost)
	if created || run.Told("no vhost "+vhost) {
		return nil
	}
	return diag.Diagnostics{diag.NewAttributeWarningDiagnostic(vhostPath, "Vhost does not exist yet",
		missingVhost(ctx, run, vhost)+" Apply fails unless something else in the same apply makes it first.")}
}

func vhostNotAccessible(ctx context.Context, run *configured.Provider, vhost string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(vhostPath, "Vhost not accessible", missingVhost(ctx, run, vhost)+
		" A resource in the state stays there. "+
		"Give the user permissions in the vhost. "+
		"If the vhost no longer exists, remove the resource from the state: terraform state rm.")
}

// SoNothingChanged ends the error of a change whose vhost could not be listed.
const SoNothingChanged = ", so nothing of this resource was changed"

// CannotList is the error if the vhost could not be listed. The text consequence follows.
func CannotList(vhost, consequence string, err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Cannot read the vhost", fmt.Sprintf("Vhost %q could not be listed%s: %s", vhost, consequence, err))
}

// Imports.

// Unstarted is the error if queues take no messages, which an import or an interrupted change finds. If the broker does not answer,
// it is nil.
func Unstarted(ctx context.Context, run *configured.Provider, vhost string, queues ...string) diag.Diagnostics {
	unstarted, err := run.Applier.Unstarted(ctx, vhost, queues...)
	if err != nil || len(unstarted) == 0 {
		return nil
	}
	return diag.Diagnostics{diag.NewErrorDiagnostic("Queues take no messages", fmt.Sprintf(
		"The broker reports no statistics for these queues in vhost %q:\n  - %s\n\n"+
			"If their nodes run, the request that declared them was cut off, for example because Terraform was killed. "+
			"Such a queue has never taken a message, and takes none. Delete it by hand, in the management UI or with rabbitmqctl delete_queue. "+
			"Then import again, or apply.", vhost, strings.Join(unstarted, "\n  - ")))}
}

func (k ResourceType) invalidID(id string) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Invalid import id", fmt.Sprintf("%q is not an import id of %s. %s", id, k.TypeName(), k.IDForm()))
}

// IDForm says which import ids the type has.
func (k ResourceType) IDForm() string {
	var examples []string
	for _, part := range k.Parts {
		examples = append(examples, part.Example)
	}
	return fmt.Sprintf("An import id has the form <%s>, such as %s. In an id of several parts, / is %%2F and %% is %%25.",
		strings.Join(k.partNames(), ">/<"), FormatID(examples...))
}
