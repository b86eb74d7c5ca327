package entity

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// vhostPath is the attribute of all kinds that messages name.
var vhostPath = path.Root(VhostPart.Name)

// title is the kind as a sentence begins with it.
func (e *entity[M, S]) title() string {
	kind := string(e.kind.Kind)
	return strings.ToUpper(kind[:1]) + kind[1:]
}

// resourceType is the type as configurations write it.
func (e *entity[M, S]) resourceType() string { return "rabbitmq_" + e.kind.Type }

func (e *entity[M, S]) lastPath() path.Path { return path.Root(e.lastPart()) }

// lastPart is the attribute that has the name of a key.
func (e *entity[M, S]) lastPart() string { return e.kind.Parts[len(e.kind.Parts)-1].Name }

// The provider and its connection.

func unexpectedProviderData(data any) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Unexpected provider data",
		fmt.Sprintf("This is a bug in the provider: its resources and data sources were given a %T.", data))
}

func notConnected() diag.Diagnostic {
	return diag.NewErrorDiagnostic("The provider is not configured",
		"Its endpoint or credentials are still unknown at apply, so nothing was changed.")
}

func notConnectedForData() diag.Diagnostic {
	return diag.NewErrorDiagnostic("The provider is not configured",
		"Its endpoint or credentials are not known yet, so there is nothing to read. "+
			"If they come from a resource of this configuration, let the data source depend on it: depends_on = [...].")
}

func userRefused(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("RabbitMQ refused the user",
		err.Error()+".\n\nThe user also needs one of the tags management, policymaker, monitoring and administrator.")
}

func proxyInTheWay(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("The proxy does not lead to RabbitMQ", err.Error()+".")
}

func notRabbitMQ(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("The broker is not RabbitMQ",
		"The provider block, or RABBITMQ_ENDPOINT, names another broker. Nothing was changed: "+err.Error()+".")
}

func unfamiliarBroker(name string) diag.Diagnostic {
	text := product.Unfamiliar(name)
	return diag.NewWarningDiagnostic("The broker does not call itself RabbitMQ", strings.ToUpper(text[:1])+text[1:]+".")
}

func notReached(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("RabbitMQ's management API cannot be reached", notReachedDetail+err.Error()+".")
}

func planNotCompared(err error) diag.Diagnostic {
	return diag.NewWarningDiagnostic("The plan was not compared with the broker",
		"RabbitMQ's management API cannot be reached. The plan is made without it; apply needs it, and finds what a plan finds "+
			"otherwise. "+notReachedDetail+err.Error()+".")
}

func planNotConfigured() diag.Diagnostic {
	return diag.NewWarningDiagnostic("The plan was not compared with the broker",
		"The endpoint or the credentials in the provider block are not known yet. So this plan cannot tell whether a replacement, a "+
			"destroy or a queue that leaves loses messages. First create what they come from, with terraform apply -target.")
}

const notReachedDetail = "Check the endpoint in the provider block, or RABBITMQ_ENDPOINT: it is the URL of the management API " +
	"(port 15672, or 15671 with TLS; not the AMQP port). And check that the plugin rabbitmq_management is enabled.\n\n"

func unknownInput() diag.Diagnostic {
	return diag.NewErrorDiagnostic("Unknown input at apply",
		"This is a bug in the provider: an attribute is still unknown.")
}

func mayNotWritePolicies(user broker.User, use PolicyUse) diag.Diagnostic {
	tags := strings.Join(append(slices.Clone(user.Tags), "policymaker"), " ")
	detail := fmt.Sprintf("%s, which needs the tag policymaker, but the user %q has the tags %q. "+
		"Add it to them: rabbitmqctl set_user_tags %s %s.",
		use.Why, user.Name, user.Tags, user.Name, tags)
	if use.Without != "" {
		detail += " " + use.Without
	}
	return diag.NewAttributeErrorDiagnostic(use.At, "User may not write policies", detail)
}

// The vhost.

func missingVhost(vhost string) string {
	return fmt.Sprintf("Vhost %q does not exist, or the provider's user has no permissions in it.", vhost)
}

func vhostNotThere(vhost, consequence string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(vhostPath, "Vhost does not exist", missingVhost(vhost)+consequence)
}

func vhostNotThereYet(vhost string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(vhostPath, "Vhost does not exist yet",
		missingVhost(vhost)+" Apply fails unless something else in the same apply makes it first.")
}

func vhostNotAccessible(vhost string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(vhostPath, "Vhost not accessible", missingVhost(vhost)+
		" The resource is kept in the state. "+
		"Give the user permissions in the vhost; "+
		"if the vhost is really gone, remove the resource from the state: terraform state rm.")
}

// soNothingChanged is what follows for a change from a vhost that could not be listed.
const soNothingChanged = ", so nothing was changed"

func cannotList(vhost, consequence string, err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Cannot read the vhost", fmt.Sprintf("Vhost %q could not be listed%s: %s", vhost, consequence, err))
}

// Plans and imports.

func invalidID(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Invalid import id", err.Error())
}

func (e *entity[M, S]) cannotImport(key configured.Key, err error) diag.Diagnostic {
	return e.cannot("import", fmt.Sprintf("%s: %s.", e.describe(key), err))
}

func (e *entity[M, S]) describe(key configured.Key) string {
	return fmt.Sprintf("%s %q in vhost %q", e.title(), key.Name, key.Vhost)
}

func (e *entity[M, S]) destroyWithoutRefresh() diag.Diagnostic {
	return diag.NewWarningDiagnostic(fmt.Sprintf("To destroy the %s all the same", e.kind.Kind),
		"terraform destroy plans an apply first, which the error ends. terraform destroy -refresh=false does not, and proves as usual "+
			"that no message is lost.")
}

// Changes.

func (e *entity[M, S]) cannotCreate(key configured.Key, spec S, err error) diag.Diagnostic {
	var kept *apply.KeptError
	var left *apply.NotUndoneError // what is kept then is not why it failed
	if errors.As(err, &kept) && !errors.As(err, &left) {
		return diag.NewErrorDiagnostic("The change would lose messages",
			fmt.Sprintf("%s was not created.\n\n%s", e.describe(key), e.notEmpty(spec, kept.Queues)))
	}
	return e.cannot("create", fmt.Sprintf("%s was not created.\n\n%s", e.describe(key), err))
}

func (e *entity[M, S]) cannotUpdate(err error) diag.Diagnostic {
	return e.cannot("update", fmt.Sprintf(
		"The change was begun but not finished; the next plan shows what is left to do.\n\n%s", err))
}

func (e *entity[M, S]) cannotBeginUpdate(err error) diag.Diagnostic {
	return e.cannot("update", fmt.Sprintf("Nothing was changed.\n\n%s", err))
}

func (e *entity[M, S]) cannot(verb, detail string) diag.Diagnostic {
	return diag.NewErrorDiagnostic(fmt.Sprintf("Cannot %s the %s", verb, e.kind.Kind), detail)
}

func (e *entity[M, S]) changeLosesMessages(spec S, queues map[string]string) diag.Diagnostic {
	return diag.NewErrorDiagnostic("The change would lose messages", e.notEmpty(spec, queues))
}

func (e *entity[M, S]) changeWouldLoseMessages(spec S, queues map[string]string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(e.kind.Places.Missing, "The change would lose messages",
		"Apply deletes or re-creates these queues, and refuses while they have messages or consumers. "+e.notEmpty(spec, queues))
}

func (e *entity[M, S]) destroyLosesMessages(spec S, queues map[string]string) diag.Diagnostic {
	return diag.NewErrorDiagnostic(e.destroyLosesMessagesSummary(), e.notEmpty(spec, queues))
}

func (e *entity[M, S]) destroyWouldLoseMessages(spec S, queues map[string]string) diag.Diagnostic {
	return diag.NewWarningDiagnostic(e.destroyLosesMessagesSummary(), e.notEmpty(spec, queues))
}

func (e *entity[M, S]) destroyDeletesMessages(queues map[string]string) diag.Diagnostic {
	return diag.NewWarningDiagnostic(fmt.Sprintf("Destroying the %s deletes messages", e.kind.Kind),
		"force_destroy = true is applied, so these messages are deleted, or lost with what leads them on:\n"+apply.Describe(queues))
}

func (e *entity[M, S]) destroyLosesMessagesSummary() string {
	return fmt.Sprintf("Destroying the %s would lose messages", e.kind.Kind)
}

func (e *entity[M, S]) bindingsGo(bindings []topology.Binding) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Bindings of others are deleted", fmt.Sprintf(
		"These bindings are not the %s's, and go with its exchanges and queues. If it is replaced, they do not come back:\n%s\n\n"+
			"Whoever needs them should bind to something else before you apply.",
		e.kind.Kind, preflight.BulletsOf(bindings)))
}

func queuesBound(bound *apply.BoundError) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Exchanges or queues are bound by others",
		bound.Error()+" Apply refuses the change as long as they are there.")
}

// notEmpty says which queues stand in the way of a change, and what to do.
func (e *entity[M, S]) notEmpty(spec S, queues map[string]string) string {
	remedies := map[string][]string{}
	for queue, found := range queues {
		remedy := remedyForPending
		if !apply.IsPending(found) {
			remedy = e.kind.Remedy(spec, queue)
		}
		remedies[remedy] = append(remedies[remedy], queue)
	}
	text := []string{
		"These queues are not empty, or not proved to be:\n" + apply.Describe(queues), "Nothing is deleted while messages would be lost.",
	}
	for _, remedy := range slices.Sorted(maps.Keys(remedies)) {
		slices.Sort(remedies[remedy])
		text = append(text, strings.Join(remedies[remedy], ", ")+": "+remedy)
	}
	return strings.Join(text, "\n\n")
}

const remedyForPending = "dead letters stay in their queue until its dead-letter exchange leads to a queue that accepts them: " +
	"the plan of the pipeline that gets them shows what is missing there, and its apply restores it. Brokers send them again every three " +
	"minutes. If new ones come all the time, timeouts.update gives the apply longer to find a moment without. " +
	"They also stay where a pipeline has the queue with dead_letter_strategy = \"at-least-once\" after the change."

func queuesKept(queues map[string]string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Queues are kept",
		"These queues were not deleted, since they are not proved to be empty:\n"+apply.Describe(queues)+
			"\n\nRetired queues go on draining. A later plan proposes the removal of the queues again.")
}

// NoteGarbled keeps an owner that may owe somebody a binding.
func NoteGarbled(kind configured.Kind, b topology.Binding) *InUse {
	why := fmt.Sprintf(preflight.GarbledNote, b.String(), stored.UnboundArgument, kind)
	return &InUse{Summary: "Unreadable note of a deleted binding", Planned: why, Applied: why + "\n\nNothing was deleted.", Waited: why}
}

// What a failure leaves behind.

func (e *entity[M, S]) rollbackIncomplete(left error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Rollback incomplete", fmt.Sprintf(
		"The next plan shows what is missing of the %s's own objects, and the notes of deleted bindings of others. "+
			"The next apply restores both.\n\n%s",
		e.kind.Kind, left))
}

func leftoversNotImportable(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Leftover objects are not in state", fmt.Sprintf(
		"They cannot be imported now: %s.\n\n"+
			"Run apply again first: it takes over what an interrupted creation left. "+
			"If it says that objects exist already, and they still cannot be imported, look into their queues, and delete these objects by hand.",
		err))
}

func (e *entity[M, S]) leftoversImportable(id string) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Leftover objects are not in state", fmt.Sprintf(
		"Import them, whether you want to keep them or not. "+
			"The next plan then shows what is missing, and a destroy refuses while messages would be lost:\n\n"+
			"  terraform import %s.<name> '%s'",
		e.resourceType(), id))
}
