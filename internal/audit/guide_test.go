package audit

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The guide has exactly these rules, with their severities.
func TestGuideHasEveryRule(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../templates/guides/dead-letter-audit.md.tmpl")
	require.NoError(t, err)
	var documented []string
	for _, entry := range regexp.MustCompile("(?m)^### `([a-z-]+)`\n\n(Error|Warning)[.,]").FindAllStringSubmatch(string(guide), -1) {
		documented = append(documented, entry[1]+" "+strings.ToLower(entry[2]))
	}
	var existing []string
	for _, r := range rules {
		existing = append(existing, r.id+" "+string(r.severity))
	}
	slices.Sort(documented)
	slices.Sort(existing)
	require.Equal(t, existing, documented)
	for _, part := range []string{"*Remedy:*", "*Measured:*"} {
		require.Equal(t, len(rules), strings.Count(string(guide), part), part)
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
