package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	guide    = "../../templates/guides/monitoring-the-sidecar.md.tmpl"
	examples = "../../examples/observability/"
)

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content)
}

// catalogue lists all metrics except the metrics of the Go runtime and the process.
func catalogue() []metric {
	return slices.Concat(countersByName, []metric{latency}, collected, []metric{build})
}

// The guide has exactly the metrics of the catalogue.
func TestGuideHasEveryMetric(t *testing.T) {
	t.Parallel()
	var want []string
	for _, m := range catalogue() {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help))
	}
	got := regexp.MustCompile("(?m)^\\| `rabbitmq_retry_.*$").FindAllString(read(t, guide), -1)
	require.Equal(t, want, got)
}

// used returns the names of the worker's metrics in a file, without the additions of a histogram.
func used(t *testing.T, file string) []string {
	t.Helper()
	names := regexp.MustCompile(`\brabbitmq_retry_[a-z_]+`).FindAllString(read(t, file), -1)
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, "_bucket")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestExamplesUseMetricsThatExist(t *testing.T) {
	t.Parallel()
	var existing []string
	for _, m := range catalogue() {
		existing = append(existing, m.Name)
	}
	for _, file := range []string{"dashboard.json", "alerts.yml", "alerts_test.yml"} {
		for _, name := range used(t, examples+file) {
			require.Contains(t, existing, name, file)
		}
	}
	shown := used(t, examples+"dashboard.json")
	for _, name := range existing {
		require.Contains(t, shown, name, "dashboard")
	}
}

// For a wrong query, Grafana shows an empty panel and no error.
func TestDashboardQueriesAreValid(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Panels []struct {
			ID      int
			Targets []struct{ RefID, Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, examples+"dashboard.json")), &dashboard))
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			rules = append(rules, rule{fmt.Sprintf("panel_%d_%s", panel.ID, target.RefID), strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")})
		}
	}
	content, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rules.yml")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	promtool(t, "check", "rules", file)
}

// Each alert says what to do, is tested, and is in the guide.
func TestAlertsAreDocumented(t *testing.T) {
	t.Parallel()
	rules := read(t, examples+"alerts.yml")
	alerts := regexp.MustCompile(`(?m)^      - alert: (\w+)$`).FindAllStringSubmatch(rules, -1)
	for _, part := range []string{"summary: ", "description: ", "severity: "} {
		if n := strings.Count(rules, part); n != len(alerts) || n == 0 {
			t.Errorf("%d of %d alerts have a %s", n, len(alerts), part)
		}
	}
	tests, documented := read(t, examples+"alerts_test.yml"), read(t, guide)
	for _, alert := range alerts {
		if strings.Count(tests, alert[1]) < 2 {
			t.Errorf("%s is not tested, firing and not", alert[1])
		}
		require.Contains(t, documented, "| `"+alert[1]+"` |", guide)
	}
}

func TestAlertsWithPromtool(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "config", "prometheus.yml")
	promtool(t, "test", "rules", "alerts_test.yml")
}

func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	command := exec.CommandContext(t.Context(), promtool, arguments...)
	command.Dir = examples
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}
