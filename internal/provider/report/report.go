// Package report turns what the checks have to say into diagnostics.
package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

// Errors reports problems at their attributes.
func Errors(problems []problem.Problem) diag.Diagnostics {
	return diagnostics(problems, diag.NewAttributeErrorDiagnostic)
}

// Warnings reports problems that do not stand in the way.
func Warnings(problems []problem.Problem) diag.Diagnostics {
	return diagnostics(problems, diag.NewAttributeWarningDiagnostic)
}

// diagnostics have the place and the detail as Terraform can show them. It finds the line of an entry of a map, and not that of
// an attribute within the entry, so the detail names the attribute.
func diagnostics(problems []problem.Problem, of func(path.Path, string, string) diag.DiagnosticWithPath) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, p := range problems {
		at, detail := attributePath(p.Path), p.Detail
		if shown := attribute.Shown(at); !shown.Equal(at) {
			at, detail = shown, p.String()
		}
		diags.Append(of(at, p.Summary, detail))
	}
	return diags
}

func attributePath(steps problem.Path) path.Path {
	at := path.Empty()
	for _, step := range steps {
		switch s := step.(type) {
		case string:
			at = at.AtName(s)
		case int:
			at = at.AtListIndex(s)
		case problem.MapKey:
			at = at.AtMapKey(string(s))
		}
	}
	return at
}

// Planned reports what a live vhost means for a plan. OwnersMayGo says that the same apply can destroy the pipelines which have a
// work queue.
func Planned(findings preflight.Findings, ownersMayGo bool) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, f := range findings {
		if f.Cause == preflight.Wrong || f.Cause == preflight.Unreadable || f.Cause == preflight.Owned && !ownersMayGo {
			diags.Append(Errors([]problem.Problem{f.Problem})...)
			continue
		}
		if f.Cause == preflight.NoPipeline || f.Cause == preflight.Missing {
			f.Summary += " yet"
		}
		f.Detail += f.OnlyPlan
		diags.Append(Warnings([]problem.Problem{f.Problem})...)
	}
	return diags
}

// Applied reports what stands in the way of a change that is about to begin.
func Applied(findings preflight.Findings) diag.Diagnostics {
	var problems []problem.Problem
	for _, f := range findings {
		if f.Cause != preflight.Notice {
			f.Detail += f.OnlyApply
			problems = append(problems, f.Problem)
		}
	}
	return Errors(problems)
}

// AuditFinding reports what an audit of the vhost as planned finds.
func AuditFinding(at path.Path, rule, message, remedy string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(at, "Dead-letter audit: "+rule, message+"\n\n"+remedy)
}

// FailedQueuesStay warns, if there are any, of failed queues that a change does not delete, since others have failed messages
// there: each with the pipelines of those.
func FailedQueuesStay(staying map[string][]string) diag.Diagnostics {
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
		"Other work queues have their failed messages in these queues. "+
			"They stay, with their messages, and nothing here manages them any more:\n%s",
		preflight.Bullets(lines)))}
}

// DeadLettersDropped warns of a change after which nobody gets what is rejected in these queues.
func DeadLettersDropped(queues []string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages will be dropped", fmt.Sprintf(
		"This change takes the dead-letter exchange away from these queues. Until they have another one, "+
			"the broker drops what their consumers reject:\n%s\n\n"+preflight.IfMoved+
			"To hand a queue over without a gap, take two steps. First add it to its new owner, and apply. Then remove it here, and apply. "+
			"Another pipeline, or an attachment to one, needs take_over_from for that; between work_queues and an attachment of one pipeline, "+
			"nothing more is needed. The guide \"Moving work queues\" shows both.",
		preflight.Bullets(queues)))
}

// DeadLettersAreDropped warns after an apply of queues that it has detached, and that nothing else has attached since.
func DeadLettersAreDropped(queues []string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages are dropped", fmt.Sprintf(
		"These queues have no dead-letter exchange now. Until they get one, the broker drops what their consumers reject:\n%s\n\n"+
			"If the rest of this apply attaches them again, it ends there. Otherwise, attach them to a pipeline, and apply.",
		preflight.Bullets(queues)))
}

// ReleasedUnread warns that nothing is known about queues that an apply has detached.
func ReleasedUnread(queues []string, err error) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages may be dropped", fmt.Sprintf(
		"This change has detached these queues. Whether they still have a dead-letter exchange could not be read: %s.\n%s\n\n"+
			"Look at the queues in RabbitMQ's management UI.",
		err, preflight.Bullets(queues)))
}
