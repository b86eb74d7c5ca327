package metrics

import (
	"cmp"
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
	"go.yaml.in/yaml/v3"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/golden"
)

const (
	page     = "metrics-and-alerts"
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

// The page has every metric and every alert.
func TestReferenceOfMetrics(t *testing.T) {
	t.Parallel()
	var metrics, alerts [][]string
	for _, m := range catalogue() {
		metrics = append(metrics, []string{"`" + m.Name + "`", m.Type, strings.Join(m.Labels, ", "), m.Help})
	}
	golden.Section(t, page, "metrics", golden.Table([]string{"metric", "type", "labels", "meaning"}, metrics))
	for _, r := range alertRules(t) {
		if r.Alert != "" {
			link := fmt.Sprintf("[%s](troubleshooting.md#%s)", r.Alert, strings.ToLower(r.Alert))
			alerts = append(alerts, []string{link, r.Labels["severity"], cmp.Or(r.For, "at once")})
		}
	}
	golden.Section(t, page, "alerts", golden.Table([]string{"alert", "severity", "after"}, alerts))
}

// rule is an alert, or a recording rule.
type rule struct {
	Alert       string            `yaml:"alert"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alertRules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, examples+"alerts.yml")), &file))
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
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
	type recording struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []recording
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			rules = append(rules, recording{fmt.Sprintf("panel_%d_%s", panel.ID, target.RefID), strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")})
		}
	}
	content, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rules.yml")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	promtool(t, "check", "rules", file)
}

// Each alert says what to do, and is tested.
func TestAlertsAreComplete(t *testing.T) {
	t.Parallel()
	tests := read(t, examples+"alerts_test.yml")
	for _, r := range alertRules(t) {
		if r.Alert == "" {
			continue
		}
		for _, text := range []string{r.Annotations["summary"], r.Annotations["description"], r.Annotations["runbook_url"], r.Labels["severity"]} {
			require.NotEmpty(t, text, r.Alert)
		}
		if strings.Count(tests, r.Alert) < 2 {
			t.Errorf("%s is not tested, firing and not", r.Alert)
		}
	}
}

func TestAlertsWithPromtool(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "config", "prometheus.yml")
	promtool(t, "test", "rules", "alerts_test.yml")
}

func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	brokertest.NeedsProgram(t, "promtool")
	command := exec.CommandContext(t.Context(), "promtool", arguments...)
	command.Dir = examples
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}
