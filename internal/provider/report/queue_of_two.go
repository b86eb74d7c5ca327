package report

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
)

const (
	takenOverMutually = "Each of the two takes it over from the other: leave take_over_from to the one that is to keep it."
	takenOverTwice    = "Both take it over from %q: leave it to one of the two."
	takenOverFurther  = "%q takes it over from %q here, and %q has it, too. One move ends before the next one begins: where %[2]q is " +
		"taking it over from %[3]q, remove the queue from %[3]q and apply, then remove take_over_from in %[2]q and apply. " +
		"Otherwise leave it to one of the two."
	leftToOne = "Leave it to one of the two. To move it without losing what is rejected meanwhile, the one that is to keep it takes it " +
		"over: take_over_from = the name of the other, as the guide \"Moving work queues\" shows."
)

// QueueOfTwo reports that two pipelines of a configuration claim a queue, and neither takes it over from the other, or
// both do, or that one of the two is another owner, which makes the queue for itself.
func QueueOfTwo(at path.Path, queue string, mine, other session.Claim) diag.Diagnostic {
	if other.Own {
		return diag.NewAttributeErrorDiagnostic(at, "Queue of another owner", fmt.Sprintf(
			"Queue %q is one of the own queues of the %s in this configuration. Leave it out.", queue, other.Owner))
	}
	return diag.NewAttributeErrorDiagnostic(at, "Queue of two pipelines", fmt.Sprintf(
		"Queue %q is a work queue of the pipeline %q in this configuration as well, and belongs to one pipeline. ", queue, other.Owner)+
		toOneOf(mine, other))
}

func toOneOf(a, b session.Claim) string {
	switch {
	case a.From == b.Owner && b.From == a.Owner:
		return takenOverMutually
	case a.From == b.From && a.From != "":
		return fmt.Sprintf(takenOverTwice, a.From)
	case a.From != "" && b.From == "":
		return fmt.Sprintf(takenOverFurther, a.Owner, a.From, b.Owner)
	case b.From != "" && a.From == "":
		return fmt.Sprintf(takenOverFurther, b.Owner, b.From, a.Owner)
	}
	return leftToOne
}
