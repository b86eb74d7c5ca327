package audit

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The guide has a section for each rule, in the same order, with its severity, its fault and its remedy.
func TestGuideToRules(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../templates/guides/audit-rules.md.tmpl")
	require.NoError(t, err)
	sections := strings.Split(string(guide), "\n## ")[1:]
	require.Len(t, sections, len(rules))
	for i, r := range rules {
		severity := map[Severity]string{Error: "Error", Warning: "Warning"}[r.severity]
		form := fmt.Sprintf("^`%s`\n\n\\*\\*%s\\.\\*\\* \\S[^\n]+\\.\n\n\\*Remedy:\\* \\S[^\n]+\\.\n*$", r.id, severity)
		require.Regexp(t, form, sections[i])
	}
}

// Each rule is shown on a broker.
func TestEveryRuleIsShownOnABroker(t *testing.T) {
	t.Parallel()
	shown := ""
	for _, file := range []string{"faults_test.go", "on_broker_test.go", "pipelines_test.go", "delayed_test.go"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		shown += string(content)
	}
	for _, id := range Rules() {
		require.Contains(t, shown, `"`+id+`"`)
	}
}
