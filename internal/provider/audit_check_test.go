package provider_test

import (
	"net/http"
	"os"
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
	b.DeclareQueue(t, "work", "classic", map[string]any{"x-dead-letter-exchange": "dead"})
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	for _, name := range []string{"providers.tf", "data-source.tf"} {
		content, err := os.ReadFile(filepath.Join("../../examples/data-sources/rabbitmq_dead_letter_audit", name))
		require.NoError(t, err)
		tf.Write(t, name, strings.ReplaceAll(string(content), `vhost = "/"`, `vhost = "`+b.Vhost+`"`))
	}
	plan := func() string {
		return inOneLine(tf.Run(t, "plan", "-detailed-exitcode", "-input=false", "-lock=false", "-no-color"))
	}

	output := plan()
	for _, want := range []string{"Check block assertion failed", `queue work: The dead-letter exchange "dead" of queue "work" does not exist.`, "(dead-letter-exchange-missing)"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is not in %s", want, output)
		}
	}

	b.Call(t, http.MethodPut, b.Path("exchanges", "dead"), map[string]any{"type": "fanout", "durable": true}, nil)
	b.DeclareQueue(t, "parked", "classic", nil)
	b.Call(t, http.MethodPost, b.Path("bindings", "e", "dead", "q", "parked"), map[string]any{}, nil)
	if output := plan(); strings.Contains(output, "Check block") || !strings.Contains(output, "No changes.") {
		t.Errorf("after the repair: %s", output)
	}
}
