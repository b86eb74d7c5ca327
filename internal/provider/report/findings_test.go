package report

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
)

// A finding's cause decides whether a plan and an apply fail or warn.
func TestCausesOfFindings(t *testing.T) {
	t.Parallel()
	const wrong, warning, planned, applied = "Error: S: D.", "Warning: S: D. In a plan.", "Warning: S yet: D. In a plan.", "Error: S: D. In an apply."
	for cause, want := range map[preflight.Cause]struct{ plan, replacement, apply string }{
		preflight.Wrong:      {wrong, wrong, applied},
		preflight.Unreadable: {wrong, wrong, applied},
		preflight.Notice:     {warning, warning, ""},
		preflight.Owned:      {wrong, warning, applied},
		preflight.NoPipeline: {planned, planned, applied},
		preflight.Missing:    {planned, planned, applied},
		preflight.InTheWay:   {warning, warning, applied},
	} {
		found := preflight.Findings{{
			Problem: problem.New(problem.Path{"name"}, "S", "D."), Cause: cause, OnlyPlan: " In a plan.", OnlyApply: " In an apply.",
		}}
		require.Equal(t, want.plan, said(Planned(found, false)), cause)
		require.Equal(t, want.replacement, said(Planned(found, true)), cause)
		require.Equal(t, want.apply, said(Applied(found)), cause)
	}
}

func said(diags diag.Diagnostics) string {
	var text string
	for _, d := range diags {
		text += d.Severity().String() + ": " + d.Summary() + ": " + d.Detail()
	}
	return text
}
