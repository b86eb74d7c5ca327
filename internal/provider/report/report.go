// Package report turns what the checks have to say into diagnostics.
package report

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

// Errors reports problems at their attributes.
func Errors(problems []problem.Problem) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, p := range problems {
		at, detail := shown(p)
		diags.AddAttributeError(at, p.Summary, detail)
	}
	return diags
}

// Warnings reports problems that do not stand in the way.
func Warnings(problems []problem.Problem) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, p := range problems {
		at, detail := shown(p)
		diags.AddAttributeWarning(at, p.Summary, detail)
	}
	return diags
}

// shown is the place and the detail as Terraform can show them. It finds the line of an entry of a map, and not that of an
// attribute within the entry, so the detail names the attribute.
func shown(p problem.Problem) (path.Path, string) {
	at := attributePath(p.Path)
	if shown := attribute.Shown(at); !shown.Equal(at) {
		return shown, p.String()
	}
	return at, p.Detail
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
