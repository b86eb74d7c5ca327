package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

var refusals = []plain.Refusal{
	plain.Refused("type", `unsupported queue type`, `Set type to "quorum", "classic", "stream", or a type that a plugin of the broker adds.`),
	plain.RefusedArgument(),
}

func typeTwice() diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("arguments"), "Queue type in arguments",
		"Set type, and leave x-queue-type out of arguments.")
}

func onlyClassic() diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("type"), "Not a classic queue",
		"Only a classic queue can be transient (durable = false) or auto_delete. Set type = \"classic\".")
}

// holdsMessages warns of the messages in a queue that is destroyed.
func holdsMessages(m model, contents map[string]string) diag.Diagnostic {
	consequence := "The destroy fails while they are there. " + emptyFirst
	if m.ForceDestroy.ValueBool() {
		consequence = "The destroy deletes them, because force_destroy is set."
	}
	return diag.NewAttributeWarningDiagnostic(path.Root("name"), "Queue has messages", apply.Describe(contents)+"\n\n"+consequence)
}

// changeWouldLose is the error if a queue that has to be re-created is not proved empty.
func changeWouldLose(m model, kept *apply.KeptError) diag.Diagnostic {
	return wouldLose("The change", m, kept, "Consume or move the messages and stop the consumers. Then apply again.")
}

// destroyWouldLose is the error if a queue is not proved empty.
func destroyWouldLose(m model, kept *apply.KeptError, unbound []string) diag.Diagnostic {
	remedy := emptyFirst
	if len(unbound) > 0 {
		remedy = fmt.Sprintf("This apply has already deleted bindings to it:\n%s\n\nTo get them back, put their blocks back and apply. %s",
			preflight.Bullets(unbound), remedy)
	}
	return wouldLose("Destroying the queue", m, kept, remedy)
}

// keepsMessages is the error of a plan that destroys a queue whose messages stay.
func keepsMessages(contents map[string]string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("name"), "Queue has messages", apply.Describe(contents)+
		"\n\nIt has no consumer, so the destroy would fail, after it has deleted bindings. Consume or move the messages. "+
		"To delete them with the queue, keep the block, set force_destroy = true, apply, and then remove the block.")
}

func wouldLose(what string, m model, kept *apply.KeptError, remedy string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("name"), what+" would lose messages", fmt.Sprintf(
		"Queue %q was not deleted:\n%s\n\n%s", m.Name.ValueString(), kept, remedy))
}

// isBound is the error if bindings lead to a queue that is deleted. The creation that can follow would not restore them.
func isBound(m model, bindings []topology.Binding) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("name"), "Queue is bound", fmt.Sprintf(
		"Queue %q was not deleted. These bindings lead to it, and a new queue would not get them back:\n%s\n\nDelete these bindings first. "+
			"To replace the queue, change its attributes instead: such an update restores all bindings.",
		m.Name.ValueString(), preflight.BulletsOf(bindings)))
}

// recreated warns of a change that the broker cannot make in place, and names the policy keys that can.
func recreated(m, prior model) diag.Diagnostic {
	detail := fmt.Sprintf("RabbitMQ cannot change a queue. The apply deletes queue %q, if it is proved empty, and creates it again with all "+
		"its bindings. What is published to it meanwhile is lost.", m.Name.ValueString())
	if keys := changedPolicyKeys(m.Object().Arguments, prior.Object().Arguments); len(keys) > 0 {
		detail += fmt.Sprintf(" A policy changes the same without a re-creation, with these keys: %s.", strings.Join(keys, ", "))
	}
	return diag.NewAttributeWarningDiagnostic(path.Root("name"), "Queue will be re-created", detail)
}

// changedPolicyKeys are the arguments that differ and that a policy can set, as policy keys.
func changedPolicyKeys(a, b topology.Arguments) []string {
	var keys []string
	all := topology.Arguments{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	for argument := range all {
		key, prefixed := strings.CutPrefix(argument, "x-")
		same := topology.Arguments{key: a[argument]}.Equal(topology.Arguments{key: b[argument]})
		if prefixed && !same && slices.Contains(topology.PolicyKeys, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

const emptyFirst = "Consume or move the messages and stop the consumers, or set force_destroy = true and apply."
