package retrypipeline_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// cli is Terraform's CLI in a directory of its own, with the provider that users get. Unlike the test
// framework it can apply a plan that was saved before.
type cli struct {
	*brokertest.Broker
	dir string
	env []string
}

func newCLI(t *testing.T, settings string) *cli {
	t.Helper()
	tf := &cli{Broker: brokertest.NewNamed(t, "cli")}
	tf.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+settings, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	return tf.beside(t)
}

// beside is the same with a state of its own.
func (tf *cli) beside(t *testing.T) *cli {
	t.Helper()
	other := &cli{Broker: tf.Broker, dir: t.TempDir(), env: tf.env}
	write(t, filepath.Join(other.dir, "versions.tf"), terraformtest.Required)
	return other
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// configure writes the configuration.
func (tf *cli) configure(t *testing.T, config string) {
	t.Helper()
	write(t, filepath.Join(tf.dir, "main.tf"), config)
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
	command := exec.CommandContext(t.Context(), os.Getenv("TF_ACC_TERRAFORM_PATH"), append(arguments, "-no-color")...)
	command.Dir, command.Env = tf.dir, tf.env
	printed, err := command.CombinedOutput()
	if bugs.Match(printed) || command.ProcessState == nil {
		t.Fatalf("terraform %s: %v\n%s", arguments[0], err, printed)
	}
	return string(printed), command.ProcessState.ExitCode()
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
