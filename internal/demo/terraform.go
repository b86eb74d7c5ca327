package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/registry"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Directories of the examples, relative to the repository's root, where the demo runs.
const (
	quickstart      = "examples/quickstart"
	delayedExchange = "examples/delayed-exchange"
)

// delays are shorter than the example's own.
var delays = []string{"1s", "2s"}

// workerConfig is the sidecar's configuration.
type workerConfig struct {
	workerconfig.Config
	// file is the path of the JSON file that Terraform wrote.
	file string
}

// inbox is the queue that the sidecar consumes.
func (c workerConfig) inbox() string {
	if len(c.Pipelines) > 0 {
		return pipeline.Names(c.Pipelines[0].Name).Inbox()
	}
	return delayed.Names(c.DelayedExchanges[0].Name).Inbox()
}

// terraform runs the CLI in a temporary directory with a copy of an example.
type terraform struct {
	binary, dir string
	// example is the directory to copy.
	example string
	env     []string
}

func newTerraform(b *broker, example string) (*terraform, error) {
	dir, err := os.MkdirTemp("", "rabbitmq-retry-demo-")
	if err != nil {
		return nil, err
	}
	tf := &terraform{binary: b.terraform, dir: dir, example: example, env: terraformEnv(b, dir)}
	if err := tf.prepare(filepath.Dir(b.provider)); err != nil {
		tf.close()
		return nil, err
	}
	return tf, nil
}

// prepare copies the example and makes the CLI use the provider that was just built.
func (t *terraform) prepare(bin string) error {
	if err := os.CopyFS(t.module(), os.DirFS(t.example)); err != nil {
		return fmt.Errorf("copy %s: %w", t.example, err)
	}
	overrides := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    %q = %q\n  }\n  direct {}\n}\n", registry.Source, bin)
	return os.WriteFile(filepath.Join(t.dir, "cli.tfrc"), []byte(overrides), 0o600)
}

func (t *terraform) module() string { return filepath.Join(t.dir, filepath.Base(t.example)) }

// terraformEnv is the environment without the caller's settings for Terraform, which could name another workspace, other
// arguments or another provider.
func terraformEnv(b *broker, dir string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TF_") {
			env = append(env, variable)
		}
	}
	schedule, err := json.Marshal(delays)
	if err != nil {
		panic("strings are JSON: " + err.Error())
	}
	return append(env,
		"TF_CLI_CONFIG_FILE="+filepath.Join(dir, "cli.tfrc"),
		"TF_IN_AUTOMATION=1",
		"CHECKPOINT_DISABLE=1",
		"TF_VAR_vhost="+b.vhost,
		"TF_VAR_delays="+string(schedule),
	)
}

func (t *terraform) close() { _ = os.RemoveAll(t.dir) }

// apply creates the example's resource and returns the sidecar's configuration.
func (t *terraform) apply(ctx context.Context, out *output) (workerConfig, error) {
	text, err := t.run(ctx, "apply", "-auto-approve", "-input=false", "-no-color")
	if err != nil {
		return workerConfig{}, err
	}
	out.linesWith(text, "Plan:", "Apply complete!")
	if text, err = t.run(ctx, "output", "-raw", "worker_config"); err != nil {
		return workerConfig{}, err
	}
	config := workerConfig{file: filepath.Join(t.dir, "worker.json")}
	if config.Config, err = workerconfig.Parse([]byte(text)); err != nil {
		return workerConfig{}, fmt.Errorf("the output worker_config: %w", err)
	}
	if n := len(config.Pipelines) + len(config.DelayedExchanges); n != 1 {
		return workerConfig{}, fmt.Errorf("the output worker_config has %d elements instead of one", n)
	}
	return config, os.WriteFile(config.file, []byte(text), 0o600)
}

// planIsEmpty is an error unless Terraform's plan is empty.
func (t *terraform) planIsEmpty(ctx context.Context, out *output) error {
	text, err := t.run(ctx, "plan", "-detailed-exitcode", "-input=false", "-no-color")
	if err != nil {
		return fmt.Errorf("the plan is not empty: %w", err)
	}
	out.linesWith(text, "No changes.")
	return nil
}

// run returns the CLI's standard output. An error includes its standard error, too.
func (t *terraform) run(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, t.binary, args...)
	cmd.Dir, cmd.Env = t.module(), t.env
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// An interrupt lets Terraform finish its work.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = cleanUpTime
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(t.binary), args[0], err, stdout.String()+stderr.String())
	}
	return stdout.String(), nil
}

// linesWith prints the lines of a text that begin with one of the prefixes.
func (o *output) linesWith(text string, prefixes ...string) {
	for line := range strings.Lines(text) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) {
				o.line("%s", strings.TrimSpace(line))
			}
		}
	}
}
