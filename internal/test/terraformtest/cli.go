package terraformtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/registry"
)

// patience is how long an interrupted command can take to finish its work.
const patience = time.Minute

// A CLI is Terraform in a directory with a configuration and a state.
type CLI struct {
	Dir string
	// Env is the environment of later commands.
	Env []string

	binary string
	// serve starts a provider in this process. If it is nil, Terraform starts the provider.
	serve func(context.Context) (variable string, stop func(), err error)
}

// New makes an empty directory for the CLI. Provider is the result of [BuildProvider], or "". The environment is the test's,
// without Terraform's settings, and with these variables.
func New(t testing.TB, provider string, env ...string) *CLI {
	t.Helper()
	binary := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if binary == "" {
		t.Fatal("no Terraform: TF_ACC_TERRAFORM_PATH is not set; run it below scripts/with-terraform")
	}
	c := &CLI{Dir: t.TempDir(), binary: binary}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TF_") {
			c.Env = append(c.Env, variable)
		}
	}
	c.Env = append(c.Env, "TF_CLI_CONFIG_FILE="+Settings(t, provider), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1")
	c.Env = append(c.Env, env...)
	return c
}

// Required is the terraform block of a module that uses only this provider.
const Required = "terraform {\n  required_providers {\n    rabbitmq = { source = \"" + registry.Source + "\" }\n  }\n}\n"

// Settings writes a CLI configuration and returns its path. If provider, the result of [BuildProvider], is not "", the CLI
// uses that provider.
func Settings(t testing.TB, provider string) string {
	t.Helper()
	file, overrides := filepath.Join(t.TempDir(), "terraform.rc"), ""
	if provider != "" {
		overrides = fmt.Sprintf("dev_overrides { %q = %q }", registry.Source, provider)
	}
	require.NoError(t, os.WriteFile(file, []byte("provider_installation {\n"+overrides+"\ndirect {}\n}\n"), 0o600))
	return file
}

// Write writes a file of the configuration.
func (c *CLI) Write(t testing.TB, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, name), []byte(content), 0o600))
}

// Run runs a command and returns its output. It fails the test if the command fails.
func (c *CLI) Run(t testing.TB, args ...string) string {
	t.Helper()
	output, err := c.Try(t.Context(), args...)
	require.NoError(t, err)
	return output
}

// Try runs a command and returns its output. An error includes the output.
func (c *CLI) Try(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := c.command(ctx, args)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := c.run(ctx, command); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(c.binary), strings.Join(args, " "), err, stdout.String()+stderr.String())
	}
	return stdout.String(), nil
}

// Exit runs a command and returns its output and its exit code.
func (c *CLI) Exit(t testing.TB, args ...string) (printed string, code int) {
	t.Helper()
	var output bytes.Buffer
	command := c.command(t.Context(), args)
	command.Stdout, command.Stderr = &output, &output
	err := c.run(t.Context(), command)
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return output.String(), command.ProcessState.ExitCode()
}

// Shell runs shell commands with this CLI as terraform, and returns their output. It fails the test if a command fails.
func (c *CLI) Shell(t testing.TB, commands string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	command.Dir, command.Env = c.Dir, append(slices.Clip(c.Env), "PATH="+OnPath(t)+":"+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	require.NoErrorf(t, err, "%s\n%s", commands, output)
	return string(output)
}

// OnPath returns a folder with the CLI of the tests, under the name terraform.
func OnPath(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.Symlink(os.Getenv("TF_ACC_TERRAFORM_PATH"), filepath.Join(folder, "terraform")))
	return folder
}

func (c *CLI) run(ctx context.Context, command *exec.Cmd) error {
	if c.serve != nil {
		// An interrupted command needs the provider until it has finished its work.
		variable, stop, err := c.serve(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		defer stop()
		command.Env = append(slices.Clip(c.Env), variable)
	}
	return command.Run()
}

// command is interrupted when the context ends, and then has time to finish its work.
func (c *CLI) command(ctx context.Context, args []string) *exec.Cmd {
	command := exec.CommandContext(ctx, c.binary, args...)
	command.Dir, command.Env = c.Dir, c.Env
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = patience
	return command
}
