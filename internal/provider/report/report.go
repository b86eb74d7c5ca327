// Package report turns the results of checks into diagnostics.
package report

import (
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
