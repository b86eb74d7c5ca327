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

func (o owned[M, S, P]) cannotUpdate(err error) diag.Diagnostic {
	return o.Cannot("update", fmt.Sprintf(
		"The change was begun but not finished. The next plan shows what is left to do.\n\n%s", err))
}

func (o owned[M, S, P]) cannotBeginUpdate(err error) diag.Diagnostic {
	return o.Cannot("update", fmt.Sprintf("Nothing was changed.\n\n%s", err))
}

func (o owned[M, S, P]) changeLosesMessages(spec S, queues map[string]string) diag.Diagnostic {
	return diag.NewErrorDiagnostic("The change would lose messages", o.notEmpty(spec, queues))
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

func queuesBound(bound *apply.BoundError) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Exchanges or queues are bound by others",
		bound.Error()+" Apply refuses the change while these bindings exist.")
}

func stillBound(bound *apply.BoundError) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Exchanges or queues are bound by others", "Nothing was changed.\n\n"+bound.Error())
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

// Newer prevents the destroy of objects that a newer release manages, since this release does not know all of them. It is nil for any
// other error.
func Newer(err error) *InUse {
	if !release.IsNewer(err) {
		return nil
	}
	why := fmt.Sprintf(preflight.ManagedByNewer, err)
	return &InUse{Summary: preflight.NewerDefinition, Planned: why, Applied: why + "\n\nNothing was deleted.", Waited: why}
}

// NoteGarbled prevents the destroy of an owner whose notes about other owners' deleted bindings cannot be read, nil without such
// notes.
func NoteGarbled(kind configured.Kind, garbled []topology.Binding) *InUse {
	if len(garbled) == 0 {
		return nil
	}
	why := fmt.Sprintf(preflight.GarbledNote, garbled[0].String(), stored.UnboundArgument, kind)
	return &InUse{Summary: "Unreadable note of a deleted binding", Planned: why, Applied: why + "\n\nNothing was deleted.", Waited: why}
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
