package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/command"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	// exitUsage is for a wrong configuration or command line: trying again cannot help. An audit that
	// could not be made ends with it, too: its exit code 1 says that something was found.
	exitUsage = 2
	// exitCutShort is for a second signal, after which nothing more is finished.
	exitCutShort = 3
)

// version is set by the release build with -ldflags "-X main.version=...".
var version = "dev"

// run executes the command and returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	root := newRootCommand(getenv) //nolint:contextcheck // commands have it from cobra
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)

	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintln(stderr, "rabbitmq-retry:", failed.Printable(redact(err.Error(), args)))
	var runtime cli.RuntimeError
	if errors.As(err, &runtime) {
		return exitError
	}
	return exitUsage
}

func newRootCommand(getenv func(string) string) *cobra.Command {
	root := &cobra.Command{
		Use:   "rabbitmq-retry",
		Short: "Retries rejected RabbitMQ messages with backoff",
		Long: `rabbitmq-retry is the sidecar of a RabbitMQ retry pipeline, which the Terraform resource
rabbitmq_retry_pipeline creates. Consumers reject what they cannot process; the worker sends each
message back to its work queue after a delay, and to the failed queue when it failed too often.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cli.ShowConnectionLast(root)
	root.AddCommand(newWorkerCommand(getenv), command.NewFailed(getenv, version), command.NewStatus(getenv, version),
		newAuditCommand(getenv), newConfigCommand(), newVersionCommand())
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version)
			return err
		},
	}
}
