package plain

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
)

// ErrGone says that an object to change is no longer there.
var ErrGone = errors.New("it was deleted after the plan. Plan again")

// Names lists objects by name, as [Store.All] does.
func Names[T any](objects map[string]T) [][]string {
	var all [][]string
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		all = append(all, []string{name})
	}
	return all
}

// leftOut is a list's warning of objects that belong to other resources. It names the first ones.
func leftOut(kind configured.Kind, others []string) diag.Diagnostic {
	const shown = 50
	named := preflight.Bullets(others[:min(shown, len(others))])
	if more := len(others) - shown; more > 0 {
		named += fmt.Sprintf("\nand %d more", more)
	}
	return diag.NewWarningDiagnostic("Objects of other resources are left out", fmt.Sprintf(
		"Pipelines, attachments or delayed exchanges create, change and delete these objects (%s). List rabbitmq_retry_pipeline, "+
			"rabbitmq_retry_attachment and rabbitmq_delayed_exchange instead.\n%s", kind, named))
}

// Lacks is the error if neither an attribute nor the block that can stand in its place is set.
func Lacks(attribute, block string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root(attribute), "Missing "+attribute,
		fmt.Sprintf("Set %s, or write a block %s.", attribute, block))
}

// Refusal says what to do about the broker's answer to a wrong attribute. Plugins can add types and keys, so only the broker knows which
// ones it accepts.
type Refusal struct {
	attribute, remedy string
	answer            *regexp.Regexp
}

// Refused is the refusal of an attribute, with a regular expression for the answer. The remedy has $1 for its first group.
func Refused(attribute, answer, remedy string) Refusal {
	return Refusal{attribute, remedy, regexp.MustCompile(answer)}
}

// common are the refusals of objects of any kind.
var common = []Refusal{
	Refused("vhost", `^(vhost_not_found|Not Found)$`, "If this configuration creates the vhost, refer to it, as in "+
		"vhost = rabbitmq_vhost.NAME.name. If the vhost exists, give the provider's user permissions in it."),
	Refused("user", `^vhost_or_user_not_found`, "If this configuration creates the user or the vhost, refer to it, as in "+
		"user = rabbitmq_user.NAME.name or vhost = rabbitmq_vhost.NAME.name."),
	Refused("permissions", `invalid_regexp`, "Correct the regular expressions in configure, write and read."),
}

// RefusedArgument is the refusal of an argument's value, or of an argument that the type of a queue does not have.
func RefusedArgument() Refusal {
	return Refused("arguments", `^invalid (?:type '.*' for )?arg '([^']*)'`, "Correct $1 in arguments, or remove it.")
}
