package main

import (
	"github.com/spf13/cobra"

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
