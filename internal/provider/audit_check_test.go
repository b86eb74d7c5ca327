package provider_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// The example's check block warns of a fault, in words that say what to do, and of nothing else. It is no change.
func TestAcc_CheckBlock(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	queue := map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic", "x-dead-letter-exchange": "dead"}}
	if status, response := b.Request(t, http.MethodPut, b.Path("queues", "work"), queue); status >= 300 {
		t.Fatalf("%d %s", status, response)
	}
	settings, dir := terraformtest.Settings(t, terraformtest.BuildProvider(t)), t.TempDir()
	for _, name := range []string{"providers.tf", "data-source.tf"} {
		content, err := os.ReadFile(filepath.Join("../../examples/data-sources/rabbitmq_dead_letter_audit", name))
		require.NoError(t, err)
		content = bytes.ReplaceAll(content, []byte(`vhost = "/"`), []byte(`vhost = "`+b.Vhost+`"`))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	plan := func() string {
		command := exec.CommandContext(t.Context(), os.Getenv("TF_ACC_TERRAFORM_PATH"), "plan", "-detailed-exitcode", "-input=false", "-lock=false", "-no-color")
		command.Dir = dir
		command.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+settings, "CHECKPOINT_DISABLE=1")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("terraform plan: %v\n%s", err, output)
		}
		return strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(string(output))), " ")
	}

	output := plan()
	for _, want := range []string{"Check block assertion failed", `queue work: The dead-letter exchange "dead" of queue "work" does not exist.`, "(dead-letter-exchange-missing)"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is not in %s", want, output)
		}
	}

	b.Request(t, http.MethodPut, b.Path("exchanges", "dead"), map[string]any{"type": "fanout", "durable": true})
	b.Request(t, http.MethodPut, b.Path("queues", "parked"), map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic"}})
	b.Request(t, http.MethodPost, b.Path("bindings", "e", "dead", "q", "parked"), map[string]any{})
	if output := plan(); strings.Contains(output, "Check block") || !strings.Contains(output, "No changes.") {
		t.Errorf("after the repair: %s", output)
	}
}
