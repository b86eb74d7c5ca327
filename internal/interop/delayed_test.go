//go:build interop

package interop

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// Programs that were written for the plugin work after the changes that the guide names, and no others.
func TestProgramsForThePluginDelay(t *testing.T) {
	t.Parallel()
	for heading, language := range map[string]string{
		"Python": "python", "Go": "go", "JavaScript": "javascript", "Java": "java", "PHP": "php",
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			text := section(t, "moving-from-the-delayed-message-plugin", heading)
			program := changed(t, code(t, text, language), code(t, text, "diff"))
			b := brokertest.NewNamed(t, "delayed "+language)
			config := fmt.Sprintf(`
resource "rabbitmq_delayed_exchange" "events" {
  name          = "events"
  vhost         = %q
  max_delay     = "1h"
  force_destroy = true
}
output "worker" { value = jsonencode({ delayed_exchanges = [rabbitmq_delayed_exchange.events.worker] }) }`, b.Vhost)
			apply(t, b, resource.TestStep{Config: config}, func(startSidecar func()) {
				startSidecar()
				delayed(t, startProgram(t, b, program, language), 1, 2, 3)
				// The queue of the programs keeps the delayed exchange from being destroyed.
				b.Call(t, http.MethodDelete, b.Path("queues", "reminders"), nil, nil)
			})
		})
	}
}

// changed is a program with each line of a diff that begins with - replaced by the one that follows.
func changed(t *testing.T, program, diff string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	for i := 0; i < len(lines); i += 2 {
		old, isOld := strings.CutPrefix(lines[i], "-")
		replacement, isNew := strings.CutPrefix(lines[i+1], "+")
		if !isOld || !isNew || strings.Count(program, old+"\n") != 1 {
			t.Fatalf("%q does not replace a line of\n%s", lines[i:i+2], program)
		}
		program = strings.Replace(program, old+"\n", replacement+"\n", 1)
	}
	return program
}

// delayed compares what a program prints of messages with so many seconds of delay.
func delayed(t *testing.T, lines <-chan printed, seconds ...int) {
	t.Helper()
	for _, s := range seconds {
		line := brokertest.Receive(t, lines)
		var body, waited, delay int
		_, err := fmt.Sscanf(line.text, "%d after %d ms, x-delay %d", &body, &waited, &delay)
		require.NoErrorf(t, err, "the program says %q", line.text)
		if body != s || waited < 1000*s || waited > 1000*s+20_000 || delay != -1000*s {
			t.Errorf("the program says %q, want %d s", line.text, s)
		}
	}
}
