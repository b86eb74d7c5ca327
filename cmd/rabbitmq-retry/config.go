package main

import (
	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

func newConfigCommand() *cobra.Command {
	config := &cobra.Command{
		Use:   "config",
		Short: "Describe the worker's configuration",
		Long:  "Describes the file that \"rabbitmq-retry worker --config\" reads.",
		Args:  cli.Arguments(0, 0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	config.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the worker's configuration",
		Long: `Prints the JSON Schema (draft 2020-12) of the file that "rabbitmq-retry worker --config" reads.
A schema cannot express every rule. "rabbitmq-retry worker --check" checks all rules, and looks for the
queues and exchanges on the broker.`,
		Example: `  # Have an editor or a pipeline check a configuration.
  rabbitmq-retry config schema > rabbitmq-retry.schema.json
  check-jsonschema --schemafile rabbitmq-retry.schema.json worker.json`,
		Args: cli.Arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(workerconfig.Schema)
			return cli.Runtime(err)
		},
	})
	return config
}
