package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
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
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	config.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the worker's configuration",
		Long: `Prints the JSON Schema (draft 2020-12) of the file that "rabbitmq-retry worker --config" reads. What
a schema cannot say, and whether the broker has what the configuration names, "rabbitmq-retry worker
--check" tells.`,
		Example: configExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(workerconfig.Schema)
			return err
		},
	})
	return config
}

// source is where the worker's options come from. Flags take precedence over the environment.
type source struct {
	connection   cli.Connection
	config       cli.Config
	prefetch     int
	drainTimeout time.Duration
}

func (s *source) addFlags(cmd *cobra.Command) {
	s.config.AddFlags(cmd, "the configuration")
	flags := cmd.Flags()
	flags.DurationVar(&s.drainTimeout, "drain-timeout", worker.DefaultDrainTimeout, "how long a stopping worker finishes what is in flight")
	flags.IntVar(&s.prefetch, "prefetch", worker.DefaultPrefetch,
		fmt.Sprintf("messages in flight per pipeline or delayed exchange, 1 to %d", worker.MaxPrefetch))
	s.connection.AddFlags(cmd)
}

// options also returns the configuration as it was read.
func (s *source) options() (o worker.Options, config []byte, err error) {
	o = worker.Options{Brokers: s.connection.Brokers, Prefetch: s.prefetch, DrainTimeout: s.drainTimeout, Version: version}
	if o.Config, config, err = s.config.Read(); err != nil {
		return o, nil, err
	}
	if _, err := s.connection.Brokers(); err != nil {
		return o, nil, err
	}
	if s.prefetch < 1 || s.prefetch > worker.MaxPrefetch {
		return o, nil, fmt.Errorf("--prefetch %d: must be from 1 to %d", s.prefetch, worker.MaxPrefetch)
	}
	if s.drainTimeout <= 0 {
		return o, nil, fmt.Errorf("--drain-timeout %s: must be longer than 0s", s.drainTimeout)
	}
	return o, config, nil
}

// follow returns the configurations that come after the first one.
func (s *source) follow(ctx context.Context, first []byte, hangups <-chan os.Signal, o worker.Options) <-chan workerconfig.Config {
	if file := s.config.File(); file != "" {
		report := func(outcome reload.Outcome) { o.Metrics.ConfigRead(outcome.Err) }
		return reload.File{Path: file, Logger: o.Logger, Report: report}.Follow(ctx, first, hangups)
	}
	go func() {
		for {
			select {
			case <-hangups:
				o.Logger.Warn("nothing to reload: the configuration is in the environment, which cannot change: use --config, or restart",
					"variable", cli.EnvConfigJSON)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}
