package owner

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func mayNotWritePolicies(user broker.User, use PolicyUse) diag.Diagnostic {
	tags := strings.Join(append(slices.Clone(user.Tags), "policymaker"), " ")
	detail := fmt.Sprintf("%s, which needs the tag policymaker, but the user %q has the tags %q. "+
		"Add it to them: rabbitmqctl set_user_tags %s %s.",
		use.Why, user.Name, user.Tags, user.Name, tags)
	if use.Without != "" {
		detail += " " + use.Without
	}
	return diag.NewAttributeErrorDiagnostic(use.At, "User cannot write policies", detail)
}

func (o owned[M, S, P]) destroyWithoutRefresh() diag.Diagnostic {
	return diag.NewWarningDiagnostic(fmt.Sprintf("To destroy the %s anyway", o.Name),
		"terraform destroy first plans an apply, which fails with this error. terraform destroy -refresh=false plans no apply, "+
			"and still proves that no message is lost.")
}

// Changes.

func (o owned[M, S, P]) cannotCreate(identity []types.String, spec S, err error) diag.Diagnostic {
	var kept *apply.KeptError
	var left *apply.NotUndoneError // kept queues are not the reason for the failure
	if errors.As(err, &kept) && !errors.As(err, &left) {
		return diag.NewErrorDiagnostic("The change would lose messages",
			fmt.Sprintf("%s was not created.\n\n%s", o.Describe(identity), o.notEmpty(spec, kept.Queues)))
	}
	return o.Cannot("create", fmt.Sprintf("%s was not created.\n\n%s", o.Describe(identity), err))
}

func (o owned[M, S, P]) changeWouldLoseMessages(spec S, queues map[string]string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(o.WorkQueues, "The change would lose messages",
		"Apply deletes or re-creates these queues, and fails while they have messages or consumers. "+o.notEmpty(spec, queues))
}

func (o owned[M, S, P]) destroyLosesMessages(spec S, queues map[string]string) (summary, detail string) {
	return fmt.Sprintf("Destroying the %s would lose messages", o.Name), o.notEmpty(spec, queues)
}

func (o owned[M, S, P]) destroyDeletesMessages(queues map[string]string) diag.Diagnostic {
	return diag.NewWarningDiagnostic(fmt.Sprintf("Destroying the %s deletes messages", o.Name),
		"force_destroy = true is applied. So these messages are deleted, or lost because their route is deleted:\n"+apply.Describe(queues))
}

func (o owned[M, S, P]) bindingsGo(bindings []topology.Binding) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Bindings of others are deleted", fmt.Sprintf(
		"These bindings belong to others, but are deleted with the exchanges and queues of the %s. "+
			"If it is replaced, they do not come back:\n%s\n\n"+
			"If their owners need them, they must bind to something else before you apply.",
		o.Name, preflight.BulletsOf(bindings)))
}

// queuesGo counts what Terraform's summary of a plan does not.
func (o owned[M, S, P]) queuesGo(queues map[string]topology.Queue) (diags diag.Diagnostics) {
	if len(queues) > 0 {
		diags.AddWarning(fmt.Sprintf("Queues to delete: %d", len(queues)), fmt.Sprintf(
			"Terraform counts only resources. This change of the %s deletes these queues, once they are proved empty:\n%s",
			o.Name, preflight.Bullets(slices.Sorted(maps.Keys(queues)))))
	}
	return diags
}

func queuesBound(bound *apply.BoundError) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Exchanges or queues are bound by others",
		bound.Error()+" Apply refuses the change while these bindings exist.")
}

func stillBound(bound *apply.BoundError) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Exchanges or queues are bound by others", "Nothing of this resource was changed.\n\n"+bound.Error())
}

// notEmpty names the queues that prevent a change, and a remedy for each.
func (o owned[M, S, P]) notEmpty(spec S, queues map[string]string) string {
	remedies := map[string][]string{}
	for queue, found := range queues {
		remedy := remedyForPending
		if !apply.IsPending(found) {
			remedy = o.Remedy(spec, queue)
		}
		remedies[remedy] = append(remedies[remedy], queue)
	}
	text := []string{
		"These queues are not empty, or not proved to be empty:\n" + apply.Describe(queues), "Nothing is deleted while messages would be lost.",
	}
	for _, remedy := range slices.Sorted(maps.Keys(remedies)) {
		slices.Sort(remedies[remedy])
		text = append(text, strings.Join(remedies[remedy], ", ")+": "+remedy)
	}
	return strings.Join(text, "\n\n")
}

const remedyForPending = "dead letters stay in their queue until its dead-letter exchange leads to a queue that accepts them. " +
	"The plan of the pipeline that gets them shows what is missing there, and its apply restores it. Brokers send them again every three " +
	"minutes. If new ones come all the time, timeouts.update gives the apply more time to find a moment without any. " +
	"Dead letters also survive if a pipeline has the queue with dead_letter_strategy = \"at-least-once\" after the change."

func queuesKept(queues map[string]string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Queues are kept",
		"These queues were not deleted, since they are not proved to be empty:\n"+apply.Describe(queues)+
			"\n\nRetired queues continue to drain. A later plan proposes the removal of the queues again.")
}

// failedQueuesStay warns of failed queues that a change does not delete, because other pipelines have failed messages there.
// The map has these pipelines by queue.
func failedQueuesStay(staying map[string][]string) diag.Diagnostics {
	if len(staying) == 0 {
		return nil
	}
	var lines []string
	for _, queue := range slices.Sorted(maps.Keys(staying)) {
		var users []string
		for _, name := range staying[queue] {
			users = append(users, fmt.Sprintf("%q", name))
		}
		lines = append(lines, fmt.Sprintf("%q: work queues of %s", queue, strings.Join(users, ", ")))
	}
	return diag.Diagnostics{diag.NewWarningDiagnostic("Failed queues of others are not deleted", fmt.Sprintf(
		"These queues hold failed messages of other work queues. "+
			"The queues stay, with their messages, but are no longer managed here:\n%s",
		preflight.Bullets(lines)))}
}

// deadLettersDropped warns that rejected messages of these queues will be lost after a change.
func deadLettersDropped(queues []string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages will be dropped", fmt.Sprintf(
		"This change removes the dead-letter exchange of these queues. "+
			"Until they get another dead-letter exchange, the broker drops their rejected messages:\n%s\n\n"+preflight.IfMoved+
			"To hand a queue over without a gap, first add it to its new owner, and apply. Then remove it here, and apply. "+
			"If the new owner is another pipeline, or an attachment to one, it needs take_over_from. "+
			"Between work_queues and an attachment of one pipeline, nothing more is needed. "+
			"The guide \"Changing, moving, importing, destroying\" shows both.",
		preflight.Bullets(queues)))
}

// deadLettersAreDropped warns, after an apply, of queues that it has detached and that have no dead-letter exchange since.
func deadLettersAreDropped(queues []string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages are dropped", fmt.Sprintf(
		"These queues now have no dead-letter exchange. Until they get one, the broker drops their rejected messages:\n%s\n\n"+
			"If the rest of this apply attaches them again, you need do nothing. Otherwise, attach them to a pipeline, and apply.",
		preflight.Bullets(queues)))
}

// releasedUnread warns that the state of detached queues could not be read after an apply.
func releasedUnread(queues []string, err error) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages might be dropped", fmt.Sprintf(
		"This change has detached these queues. The provider could not read whether they still have a dead-letter exchange: %s.\n%s\n\n"+
			"Look at the queues in RabbitMQ's management UI.",
		err, preflight.Bullets(queues)))
}

// Unreadable prevents the destroy of an owner whose definition a newer release has written, since this release does not
// know all of its objects, or whose notes about other owners' deleted bindings cannot be read. For others, it is nil.
func Unreadable(kind configured.Kind, definition error, garbled []topology.Binding) *InUse {
	var summary, why string
	switch {
	case release.IsNewer(definition):
		summary, why = preflight.NewerDefinition, fmt.Sprintf(preflight.ManagedByNewer, definition)
	case len(garbled) > 0:
		summary = "Unreadable note of a deleted binding"
		why = fmt.Sprintf(preflight.GarbledNote, garbled[0].String(), stored.UnboundArgument, kind)
	default:
		return nil
	}
	return &InUse{Summary: summary, Planned: why, Applied: why + "\n\nNothing of this resource was deleted.", Waited: why}
}

// Leftovers of a failure.

func (o owned[M, S, P]) rollbackIncomplete(left error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Rollback incomplete", fmt.Sprintf(
		"The next plan shows which of the %s's own objects are missing, and the notes of other owners' deleted bindings. "+
			"The next apply restores both.\n\n%s",
		o.Name, left))
}

func leftoversNotImportable(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Leftover objects are not in state", fmt.Sprintf(
		"They cannot be imported now: %s.\n\n"+
			"First run apply again, which takes over the objects of an interrupted creation. "+
			"If it says that objects exist already, and they still cannot be imported, look into their queues. Then delete these objects by hand.",
		err))
}

func (o owned[M, S, P]) leftoversImportable(id string) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Leftover objects are not in state", fmt.Sprintf(
		"Import them, even if you do not want to keep them. "+
			"The next plan then shows what is missing, and a destroy fails while messages would be lost:\n\n"+
			"  terraform import %s.<name> '%s'",
		o.TypeName(), id))
}
