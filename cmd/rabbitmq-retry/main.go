// Command rabbitmq-retry is the sidecar of a retry pipeline. It counts failed attempts, which the broker cannot do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/command"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerName {
		signal.Ignore(syscall.SIGHUP) // until the configuration is read
	}
	stops := make(chan os.Signal, 2)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		<-stops
		stop()
		// A signal has no default action here: the first process of a container has none.
		<-stops
		_, _ = fmt.Fprintln(os.Stderr, "rabbitmq-retry: stopped by a second signal before all work was finished")
		os.Exit(exitCutShort)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	// exitUsage means a wrong configuration or command line, which another attempt cannot change.
	exitUsage = 2
	// exitCutShort means that a second signal ended the command before it had finished.
	exitCutShort = 3
	// exitFound means that the command worked, and found a problem on the broker.
	exitFound = 4
)

// run executes the command and returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	// Cobra prints the bare version only with a template. In a program that uses templates, the linker keeps all methods.
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-v") {
		args = []string{"version"}
	}
	root := newRootCommand(getenv) //nolint:contextcheck // commands have it from cobra
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)

	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	text := err.Error()
	if flags := together.FindStringSubmatch(text); flags != nil {
		text = "--" + strings.ReplaceAll(flags[1], " ", " and --") + ": write only one of them"
	}
	_, _ = fmt.Fprintln(stderr, "rabbitmq-retry:", failed.Printable(redact(text, args)))
	if _, is := errors.AsType[cli.FindingError](err); is {
		return exitFound
	}
	if _, is := errors.AsType[cli.RuntimeError](err); is {
		return exitError
	}
	return exitUsage
}

// together matches cobra's error about flags that exclude each other.
var together = regexp.MustCompile(`^if any flags in the group .*; \[(.+)\] were all set$`)

func newRootCommand(getenv func(string) string) *cobra.Command {
	root := &cobra.Command{
		Use:   "rabbitmq-retry",
		Short: "Retries rejected RabbitMQ messages with backoff",
		Long: `rabbitmq-retry is the sidecar of a RabbitMQ retry pipeline, which the Terraform resource
rabbitmq_retry_pipeline creates. Consumers reject messages that they cannot process. The worker sends
each message back to its work queue after a delay. If a message failed too often, the worker sends it
to the failed queue.`,
		Args:          cli.Arguments(0, 0),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cli.ShowConnectionLast(root)
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(newWorkerCommand(getenv), command.NewFailed(getenv), command.NewDelayed(getenv), command.NewStatus(getenv),
		newAuditCommand(getenv), newAdoptCommand(getenv), newConfigCommand(), newVersionCommand())
	root.Version = release.Version()
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.Arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), release.Version())
			return cli.Runtime(err)
		},
	}
}

// redact removes a word of the command line from an error's text if it can be a URI with a password. Cobra quotes a word in
// the wrong place as an unknown command, a file's name or a wrong value.
func redact(text string, args []string) string {
	const hidden = "(not shown: it looks like a URI)"
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=")
		for _, secret := range []string{arg, value} {
			if strings.Contains(secret, "://") || strings.Contains(secret, "@") {
				text = strings.ReplaceAll(text, strconv.Quote(secret), hidden)
				text = strings.ReplaceAll(text, secret, hidden)
			}
		}
	}
	return text
}
