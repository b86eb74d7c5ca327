package retrypipeline_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// cli is Terraform's CLI in a directory of its own, with the provider in this process. Unlike the test
// framework it can apply a plan that was saved before.
type cli struct {
	*brokertest.Broker
	*terraformtest.CLI
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	return cliOf(t, brokertest.NewNamed(t, "cli"), acctest.NewCLI(t, acctest.Times()))
}

// newReleasedCLI has the provider that users get, in a process of its own.
func newReleasedCLI(t *testing.T) *cli {
	t.Helper()
	return cliOf(t, brokertest.NewNamed(t, "cli"), terraformtest.New(t, terraformtest.BuildProvider(t)))
}

// beside has a state of its own.
func (tf *cli) beside(t *testing.T) *cli {
	t.Helper()
	return cliOf(t, tf.Broker, acctest.NewCLI(t, acctest.Times()))
}

func cliOf(t *testing.T, b *brokertest.Broker, tf *terraformtest.CLI) *cli {
	t.Helper()
	tf.Write(t, "versions.tf", terraformtest.Required)
	return &cli{b, tf}
}

// configure writes the configuration.
func (tf *cli) configure(t *testing.T, config string) {
	t.Helper()
	tf.Write(t, "main.tf", config)
}

var bugs = regexp.MustCompile(`(?i)bug in the provider|inconsistent`)

// run returns what Terraform printed, on one line, and its exit code. Whatever else happens, Terraform
// may never blame the provider.
func (tf *cli) run(t *testing.T, arguments ...string) (output string, code int) {
	t.Helper()
	printed, code := tf.printed(t, arguments...)
	return strings.Join(strings.Fields(strings.ReplaceAll(printed, "│", " ")), " "), code
}

// printed is the same as it was printed.
func (tf *cli) printed(t *testing.T, arguments ...string) (output string, code int) {
	t.Helper()
	output, code = tf.Exit(t, append(arguments, "-no-color")...)
	if bugs.MatchString(output) {
		t.Fatalf("terraform %s: %d\n%s", arguments[0], code, output)
	}
	return output, code
}

// apply applies a plan that was saved, or the configuration as it is, and returns what was printed.
func (tf *cli) apply(t *testing.T, saved ...string) string {
	t.Helper()
	output, code := tf.run(t, append([]string{"apply", "-input=false", "-auto-approve"}, saved...)...)
	if code != 0 {
		t.Fatalf("apply: %d\n%s", code, output)
	}
	return output
}

// refuses fails the test unless an apply ends in an error that says all this.
func (tf *cli) refuses(t *testing.T, apply []string, words ...string) {
	t.Helper()
	output, code := tf.run(t, append([]string{"apply", "-input=false", "-auto-approve"}, apply...)...)
	if code == 0 {
		t.Fatalf("the apply was not refused:\n%s", output)
	}
	for _, want := range words {
		if !strings.Contains(output, want) {
			t.Fatalf("the refusal does not say %q:\n%s", want, output)
		}
	}
}

// plan saves a plan that changes something, and returns what was printed.
func (tf *cli) plan(t *testing.T, arguments ...string) string {
	t.Helper()
	output, code := tf.run(t, append([]string{"plan", "-input=false", "-detailed-exitcode", "-out=saved"}, arguments...)...)
	if code != 2 {
		t.Fatalf("the plan ends with %d instead of changes:\n%s", code, output)
	}
	return output
}

// settled fails the test if a plan would change anything.
func (tf *cli) settled(t *testing.T) {
	t.Helper()
	if output, code := tf.run(t, "plan", "-input=false", "-detailed-exitcode"); code != 0 {
		t.Fatalf("the plan ends with %d although nothing is to be done:\n%s", code, output)
	}
}
