// Package report turns what the checks have to say into diagnostics.
package report

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
)

// Errors reports problems at their attributes.
func Errors(problems []problem.Problem) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, p := range problems {
		diags.AddAttributeError(attributePath(p.Path), p.Summary, p.Detail)
	}
	return diags
}

// Warnings reports problems that do not stand in the way.
func Warnings(problems []problem.Problem) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, p := range problems {
		diags.AddAttributeWarning(attributePath(p.Path), p.Summary, p.Detail)
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

// AuditFinding reports what an audit of the vhost as planned finds.
func AuditFinding(at path.Path, rule, message, remedy string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(at, "Dead-letter audit: "+rule, message+"\n\n"+remedy)
}
