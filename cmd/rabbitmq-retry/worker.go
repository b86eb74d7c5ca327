package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

const workerHelp = `Consumes the inbox of each configured pipeline. A rejected message goes back to its work queue
after a delay; one that failed too often goes to the failed queue with the reason and its history.
A message is acknowledged only after the broker has confirmed the new copy, so none is lost; after
a crash one may arrive twice, with the same message-id.

It consumes the inbox of each delayed exchange as well. A message with the header x-delay waits for
that many milliseconds, never less; it goes to the unrouted queue if that is longer than max_delay.

The configuration is JSON: {"pipelines":[...],"delayed_exchanges":[...]}, with one element for each,
which is the attribute "worker" of the Terraform resource rabbitmq_retry_pipeline or
rabbitmq_delayed_exchange. Any number of workers can share one.

The configuration file is read again when it changes, and on SIGHUP. What did not change goes on
untouched; what did keeps its connections and what it has in flight. A wrong file is logged, and the
configuration before it stays in force.

The broker's address is an AMQP URI; the vhost is that of each element. Of several, the next one is
tried when one fails. URIs and credentials in files are read again for each connection. The user
needs the permissions read on <pipeline>.inbox and write on <pipeline>.retry, <pipeline>.return and
<pipeline>.failed, and write on amq.default to serve work queues that were re-created; for a delayed
exchange, read on <name>.delay.inbox and write on <name>.deliver, <name>.delay.unrouted and the levels.
The attribute "worker_permissions" has them as patterns.

With --listen, /metrics is for Prometheus, /readyz says whether every inbox is being consumed and
there is no unacknowledged backlog, and /healthz only that the process runs. Without a host, it listens
on 127.0.0.1.

SIGTERM and SIGINT stop the worker after it has finished what is in flight, within --drain-timeout;
a second signal stops it at once. Exit codes: 0 stopped, 1 failed or not finished in time, 2 wrong
configuration, 3 stopped by a second signal.`

const workerExample = `  # worker.json: {"pipelines":[{"version":1,"name":"orders","vhost":"/","delays":["5s","30s","5m"],
  #   "max_attempts":4,"retry_on":["rejected"],"work_queues":{"orders.created":{}}}]}
  RABBITMQ_URI=amqp://retry:secret@rabbitmq:5672 rabbitmq-retry worker --config worker.json

  # Does the configuration work? Nothing is consumed.
  rabbitmq-retry worker --config worker.json --uri-file /run/secrets/rabbitmq-uri --check`

// workerOptions are the options of "worker". Flags take precedence over the environment.
type workerOptions struct {
	connection cli.Connection
	config     cli.Config
	observation
	prefetch     int
	drainTimeout time.Duration
	check        bool
}

func newWorkerCommand(getenv func(string) string) *cobra.Command {
	o := &workerOptions{connection: cli.NewConnection(getenv), config: cli.Config{Getenv: getenv}}
	cmd := &cobra.Command{
		Use:     "worker",
		Short:   "Retry the rejected messages of pipelines, and delay those of delayed exchanges",
		Long:    workerHelp,
		Example: workerExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd) },
	}
	o.config.AddFlags(cmd, "the configuration")
	o.connection.AddFlags(cmd)
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&o.drainTimeout, "drain-timeout", worker.DefaultDrainTimeout, "how long a stopping worker finishes what is in flight")
	flags.IntVar(&o.prefetch, "prefetch", worker.DefaultPrefetch,
		fmt.Sprintf("messages in flight per pipeline or delayed exchange, 1 to %d", worker.MaxPrefetch))
	flags.BoolVar(&o.check, "check", false, "check configuration, connection, inboxes and exchanges, and exit with 0 if all is well")
	return cmd
}

func (o *workerOptions) run(ctx context.Context, cmd *cobra.Command) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // before the configuration is read, so that no change is missed
	options, config, err := o.options()
	if err != nil {
		return err
	}
	if err := o.complete(o.config.Getenv); err != nil {
		return err
	}
	if o.check {
		return cli.Runtime(worker.Check(ctx, options, cmd.OutOrStdout()))
	}
	options.Logger = o.logger(cmd.ErrOrStderr())
	options.Metrics = metrics.New(version)
	options.Configs = o.follow(ctx, config, hangups, options)
	stop, err := o.serve(ctx, options.Metrics, options.Logger)
	if err != nil {
		return cli.Runtime(err)
	}
	defer stop()
	floor := make([]byte, heapFloor)
	defer runtime.KeepAlive(floor)
	return cli.Runtime(worker.Run(ctx, options))
}

// heapFloor keeps the collector from running often over a small heap, which took an eighth of the processor time. Unlike a
// higher GOGC, it does not multiply the memory of large messages. This memory is never touched, so it is never resident.
const heapFloor = 8 << 20
