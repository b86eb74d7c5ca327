package audit

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The guide has every rule, with its severity, and no others.
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
	if !slices.Equal(documented, existing) {
		t.Errorf("the guide has %q\nthe rules are %q", documented, existing)
	}
	for _, part := range []string{"*Remedy:*", "*Measured:*"} {
		if n := strings.Count(string(guide), part); n != len(rules) {
			t.Errorf("%d entries have %s, of %d", n, part, len(rules))
		}
	}
}

// Each rule is shown on a broker.
func TestEveryRuleIsShownOnABroker(t *testing.T) {
	t.Parallel()
	shown := ""
	for _, file := range []string{"faults_test.go", "stuck_test.go", "expiry_test.go", "policies_test.go", "delayed_retry_test.go", "pipelines_test.go", "delayed_test.go"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		shown += string(content)
	}
	for _, id := range Rules() {
		if !strings.Contains(shown, `"`+id+`"`) {
			t.Errorf("%s is not", id)
		}
	}
}
