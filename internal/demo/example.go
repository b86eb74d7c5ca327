package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/registry"
)

// findPrograms looks for the binaries to show and for the CLI that runs the provider.
func (d *demo) findPrograms() (err error) {
	if d.bin, err = filepath.Abs(os.Getenv("DEMO_BIN")); err != nil {
		return err
	}
	for _, name := range []string{"terraform-provider-rabbitmq", "rabbitmq-retry"} {
		if _, err := os.Stat(filepath.Join(d.bin, name)); err != nil {
			return fmt.Errorf("DEMO_BIN is not the directory of the built binaries; run `make demo`: %w", err)
		}
	}
	for _, name := range []string{os.Getenv("TF_ACC_TERRAFORM_PATH"), "terraform", "tofu"} {
		if d.terraform, err = exec.LookPath(name); err == nil {
			return nil
		}
	}
	return errors.New("neither terraform nor tofu is on PATH: install one, or set TF_ACC_TERRAFORM_PATH")
}

// cliConfig is the file that makes Terraform use the provider that was just built.
const cliConfig = "cli.tfrc"

// shown are the lines of Terraform's output that the demo shows.
var shown = regexp.MustCompile(`(?m)^(Plan:|Apply complete!|No changes\.).*`)

// showExample applies a copy of an example, and shows its sidecar at work while the application acts.
func (d *demo) showExample(ctx context.Context, example, inbox string, act func(context.Context) error) error {
	d.step("terraform apply: %s in the virtual host %s on RabbitMQ %s", example, d.vhost, d.conn.Properties["version"])
	dir, err := os.MkdirTemp("", "rabbitmq-retry-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, os.DirFS(example)); err != nil {
		return fmt.Errorf("copy %s: %w", example, err)
	}
	overrides := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    %q = %q\n  }\n  direct {}\n}\n",
		registry.Source, d.bin)
	if err := os.WriteFile(filepath.Join(dir, cliConfig), []byte(overrides), 0o600); err != nil {
		return err
	}
	if _, err := d.runTerraform(ctx, dir, "apply", "-auto-approve", "-input=false", "-no-color"); err != nil {
		return err
	}
	content, err := d.runTerraform(ctx, dir, "output", "-raw", "worker_config")
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "worker.json")
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		return err
	}

	d.step("rabbitmq-retry worker: the sidecar")
	checked, err := stdout(d.sidecar(ctx, "worker", "--config", config, "--check"))
	if err != nil {
		return err
	}
	d.line("--check: %s", strings.TrimSpace(checked))
	if err := d.runWorker(ctx, config, inbox, act); err != nil {
		return err
	}

	d.step("terraform plan -detailed-exitcode")
	if _, err := d.runTerraform(ctx, dir, "plan", "-detailed-exitcode", "-input=false", "-no-color"); err != nil {
		return fmt.Errorf("the plan is not empty: %w", err)
	}
	return nil
}

// runWorker runs the sidecar while the application acts, and then stops it.
func (d *demo) runWorker(ctx context.Context, config, inbox string, act func(context.Context) error) error {
	// The context ends with the process, and the process with the context.
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var log bytes.Buffer
	worker := d.sidecar(ctx, "worker", "--config", config)
	worker.Stdout, worker.Stderr = &log, &log
	if err := worker.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		end(errors.Join(errors.New("the worker ended"), worker.Wait()))
		close(exited)
	}()
	d.line("process %d consumes %s", worker.Process.Pid, inbox)

	err := act(ctx)
	if err == nil {
		d.step("SIGTERM to the sidecar")
		err = worker.Process.Signal(syscall.SIGTERM)
	}
	if err != nil {
		end(err)
		err = context.Cause(ctx) // what went wrong first
	}
	<-exited
	if err == nil && !worker.ProcessState.Success() {
		err = fmt.Errorf("the worker did not stop cleanly: %s", worker.ProcessState)
	}
	if err != nil {
		return fmt.Errorf("%w\n\nThe worker's log:\n%s", err, &log)
	}
	d.line("it stopped with exit code 0")
	return nil
}

// sidecar is a command of the sidecar.
func (d *demo) sidecar(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(d.bin, "rabbitmq-retry"), args...)
}

// runTerraform runs the CLI in the copy of an example, and returns its standard output.
func (d *demo) runTerraform(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, d.terraform, args...)
	cmd.Dir = dir
	// The caller's settings could name another workspace, other arguments or another provider.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "TF_") })
	cmd.Env = append(cmd.Env, "TF_CLI_CONFIG_FILE="+cliConfig, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1",
		"TF_VAR_vhost="+d.vhost, fmt.Sprintf("TF_VAR_delays=[%q, %q]", delays[0], delays[1]))
	// An interrupt lets Terraform finish its work.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	text, err := stdout(cmd)
	for _, line := range shown.FindAllString(text, -1) {
		d.line("%s", line)
	}
	return text, err
}

// stdout runs a command and returns its standard output. An error includes its standard error, too.
func stdout(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, printed, &stderr)
	}
	return string(printed), nil
}
