package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/reload"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

const configExample = `  # Have an editor or a pipeline check a configuration.
  rabbitmq-retry config schema > rabbitmq-retry.schema.json
  check-jsonschema --schemafile rabbitmq-retry.schema.json worker.json`

func newConfigCommand() *cobra.Command {
	config := &cobra.Command{
		Use:   "config",
		Short: "Describe the worker's configuration",
		Long:  "Describes the file that \"rabbitmq-retry worker --config\" reads.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	config.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the worker's configuration",
		Long: `Prints the JSON Schema (draft 2020-12) of the file that "rabbitmq-retry worker --config" reads.
A schema cannot express every rule. "rabbitmq-retry worker --check" checks all rules, and looks for the
queues and exchanges on the broker.`,
		Example: configExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(workerconfig.Schema)
			return err
		},
	})
	return config
}

// options returns the worker's options, and the configuration's bytes as they were read.
func (o *workerOptions) options() (options worker.Options, config []byte, err error) {
	options = worker.Options{Brokers: o.connection.Brokers, Prefetch: o.prefetch, DrainTimeout: o.drainTimeout, Version: release.Version()}
	if options.Config, config, err = o.config.Read(); err != nil {
		return options, nil, err
	}
	if len(options.Config.Pipelines)+len(options.Config.DelayedExchanges) == 0 && !o.check {
		return options, nil, fmt.Errorf("nothing in the configuration can be run: %w", options.Config.Err())
	}
	if _, err := o.connection.Brokers(); err != nil {
		return options, nil, err
	}
	if o.prefetch < 1 || o.prefetch > worker.MaxPrefetch {
		return options, nil, fmt.Errorf("--prefetch %d: must be from 1 to %d", o.prefetch, worker.MaxPrefetch)
	}
	if o.drainTimeout <= 0 {
		return options, nil, fmt.Errorf("--drain-timeout %s: must be longer than 0s", o.drainTimeout)
	}
	return options, config, nil
}

// follow returns the configurations that come after the first one.
func (o *workerOptions) follow(
	ctx context.Context, first []byte, hangups <-chan os.Signal, options worker.Options,
) <-chan workerconfig.Config {
	if file := o.config.File(); file != "" {
		report := func(outcome reload.Outcome) { options.Metrics.ConfigRead(outcome.Err) }
		return reload.File{Path: file, Logger: options.Logger, Report: report}.Follow(ctx, first, hangups)
	}
	go func() {
		for {
			select {
			case <-hangups:
				options.Logger.Warn("nothing to reload: the configuration is in the environment, which cannot change; use --config, or restart",
					"variable", cli.EnvConfigJSON)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}
