//go:build interop

package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

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
			withDelayedExchange(t, b, func() {
				defer deleteReminders(t, b)
				delayed(t, startProgram(t, b, program, language), 1, 2, 3)
			})
		})
	}
}

// withDelayedExchange makes a delayed exchange with a sidecar, and does something with it.
func withDelayedExchange(t *testing.T, b *brokertest.Broker, do func()) {
	t.Helper()
	config := fmt.Sprintf(`
resource "rabbitmq_delayed_exchange" "events" {
  name          = "events"
  vhost         = %q
  max_delay     = "1h"
  force_destroy = true
}
output "worker" { value = jsonencode({ delayed_exchanges = [rabbitmq_delayed_exchange.events.worker] }) }`, b.Vhost)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: providers,
		Steps: []resource.TestStep{{Config: config, Check: func(state *terraform.State) error {
			startSidecar(t, b, state.RootModule().Outputs["worker"].Value.(string))
			do()
			return nil
		}}},
	})
}

// deleteReminders deletes the queue of the programs, which keeps the delayed exchange from being destroyed.
func deleteReminders(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	if _, err := b.Channel(t).QueueDelete("reminders", false, false, false); err != nil {
		t.Error(err)
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
		select {
		case line, runs := <-lines:
			var body, waited, delay int
			if _, err := fmt.Sscanf(line.text, "%d after %d ms, x-delay %d", &body, &waited, &delay); err != nil || !runs {
				t.Fatalf("the program says %q (it runs: %t): %v", line.text, runs, err)
			}
			if body != s || waited < 1000*s || waited > 1000*s+20_000 || delay != -1000*s {
				t.Errorf("the program says %q, want %d s", line.text, s)
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing after %d s", s)
		}
	}
}
