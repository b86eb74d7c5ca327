// Package report turns the results of checks into diagnostics.
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

// Warnings reports problems as warnings.
func Warnings(problems []problem.Problem) diag.Diagnostics {
	return diagnostics(problems, diag.NewAttributeWarningDiagnostic)
}

// diagnostics adapts path and detail to Terraform. Terraform can show the line of an entry of a map, but not of an attribute
// within it, so the detail names the attribute.
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

// Planned reports findings about the vhost for a plan. OwnersMayGo says that the same apply can destroy the pipelines that
// have a work queue.
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

// Applied reports findings that prevent a change, just before it begins.
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

// AuditFinding reports a finding of an audit of the planned vhost.
func AuditFinding(at path.Path, rule, message, remedy string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(at, "Dead-letter audit: "+rule, message+"\n\n"+remedy)
}

// FailedQueuesStay warns of failed queues that a change does not delete, because other pipelines have failed messages there.
// The map has these pipelines by queue.
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
		"These queues hold failed messages of other work queues. "+
			"The queues stay, with their messages, but are no longer managed here:\n%s",
		preflight.Bullets(lines)))}
}

// DeadLettersDropped warns that rejected messages of these queues will be lost after a change.
func DeadLettersDropped(queues []string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages will be dropped", fmt.Sprintf(
		"This change removes the dead-letter exchange of these queues. "+
			"Until they get another dead-letter exchange, the broker drops their rejected messages:\n%s\n\n"+preflight.IfMoved+
			"To hand a queue over without a gap, first add it to its new owner, and apply. Then remove it here, and apply. "+
			"If the new owner is another pipeline, or an attachment to one, it needs take_over_from. "+
			"Between work_queues and an attachment of one pipeline, nothing more is needed. "+
			"The guide \"Changing, moving, importing, destroying\" shows both.",
		preflight.Bullets(queues)))
}

// DeadLettersAreDropped warns, after an apply, of queues that it has detached and that have no dead-letter exchange since.
func DeadLettersAreDropped(queues []string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages are dropped", fmt.Sprintf(
		"These queues now have no dead-letter exchange. Until they get one, the broker drops their rejected messages:\n%s\n\n"+
			"If the rest of this apply attaches them again, you need do nothing. Otherwise, attach them to a pipeline, and apply.",
		preflight.Bullets(queues)))
}

// ReleasedUnread warns that the state of detached queues could not be read after an apply.
func ReleasedUnread(queues []string, err error) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages might be dropped", fmt.Sprintf(
		"This change has detached these queues. The provider could not read whether they still have a dead-letter exchange: %s.\n%s\n\n"+
			"Look at the queues in RabbitMQ's management UI.",
		err, preflight.Bullets(queues)))
}
