package audit

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/golden"
)

func TestReferenceOfRules(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, r := range rules {
		severity := map[Severity]string{Error: "Error", Warning: "Warning"}[r.severity]
		fmt.Fprintf(&text, "## `%s`\n\n**%s.** %s\n\n*Remedy:* %s\n\n", r.id, severity, r.fault, r.remedy)
	}
	golden.Section(t, "audit-rules", "rules", text.String())
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
