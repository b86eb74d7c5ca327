package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

const workerHelp = `Consumes the inbox of each configured pipeline. A rejected message goes back to its work queue
after a delay; one that failed too often goes to the failed queue with the reason and its history.
A message is acknowledged only after the broker has confirmed the new copy, so none is lost; after
a crash one may arrive twice, with the same message-id.

The configuration is JSON: {"pipelines":[...]}, with one element per pipeline, which is the
attribute "worker" of the Terraform resource rabbitmq_retry_pipeline. Any number of workers can
share a pipeline.

The broker's address is an AMQP URI; the vhost is that of each pipeline. Its user needs the
permissions read on <pipeline>.inbox and write on <pipeline>.retry, <pipeline>.return and
<pipeline>.failed, and write on amq.default to serve work queues that were created anew.

SIGTERM and SIGINT stop the worker after it has finished what is in flight, at most 25 seconds; a
second signal stops it at once. Exit codes: 0 stopped, 1 failed, 2 wrong configuration.`

const workerExample = `  # orders.json: {"pipelines":[{"version":1,"name":"orders","vhost":"/","delays":["5s","30s","5m"],
  #   "max_attempts":4,"retry_on":["rejected"],"work_queues":{"orders.created":{}}}]}
  RABBITMQ_URI=amqp://retry:secret@rabbitmq:5672 rabbitmq-retry worker --config orders.json

  # Does the configuration work? Nothing is consumed.
  rabbitmq-retry worker --config orders.json --uri-file /run/secrets/rabbitmq-uri --check`

func newWorkerCommand(ctx context.Context, getenv func(string) string) *cobra.Command {
	source := source{getenv: getenv}
	var prefetch int
	var check bool
	cmd := &cobra.Command{
		Use:     "worker",
		Short:   "Retry the rejected messages of pipelines",
		Long:    workerHelp,
		Example: workerExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := source.options(prefetch)
			if err != nil {
				return err
			}
			if check {
				err = worker.Check(ctx, options, cmd.OutOrStdout())
			} else {
				options.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
				err = withHeapFloor(func() error { return worker.Run(ctx, options) })
			}
			if err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&source.configFile, "config", "", "`file` with the configuration (default: the JSON in $"+envConfig+")")
	flags.StringVar(&source.uri, "uri", "", "AMQP `URI` of the broker, without a password (default: $"+envURI+", which may have one)")
	flags.StringVar(&source.uriFile, "uri-file", "", "`file` with the AMQP URI of the broker")
	flags.IntVar(&prefetch, "prefetch", worker.DefaultPrefetch,
		fmt.Sprintf("messages in flight per pipeline, 1 to %d", worker.MaxPrefetch))
	flags.BoolVar(&check, "check", false, "check configuration, connection, inboxes and exchanges, and exit with 0 if all is well")
	cmd.MarkFlagsMutuallyExclusive("uri", "uri-file")
	return cmd
}

// heapFloor is how much garbage may pile up before it is collected, even if little is in use.
const heapFloor = 8 << 20

// withHeapFloor spares a small heap most of its collections: they took a fifth of the processor time.
// Unlike a higher GOGC it costs the same few megabytes however much is in use. The memory is never
// touched, and so never resident.
func withHeapFloor(run func() error) error {
	floor := make([]byte, heapFloor)
	defer runtime.KeepAlive(floor)
	return run()
}
