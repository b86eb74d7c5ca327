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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

const workerHelp = `Consumes the inbox of each configured pipeline. A rejected message goes back to its work queue
after a delay. A message that failed too often goes to the failed queue with the reason and its
history. The worker acknowledges a message only after the broker has confirmed the new copy.
After a crash, a message can arrive twice, with the same message-id.

The worker also consumes the inbox of each delayed exchange. A message with the header x-delay waits
for at least that many milliseconds. If that is longer than max_delay, it goes to the unrouted queue.

The configuration is JSON: {"pipelines":[...],"delayed_exchanges":[...]}. Each element is the
attribute "worker" of the Terraform resource rabbitmq_retry_pipeline or rabbitmq_delayed_exchange.
Any number of workers can share one configuration.

If the configuration file changes, and on SIGHUP, the worker reads it again. Unchanged pipelines and
delayed exchanges go on untouched. Changed ones keep their connections and their messages in flight.
If the file is wrong, the worker logs the mistake and keeps the previous configuration.

The broker's address is an AMQP URI; the vhost comes from each element. If one of several brokers
fails, the worker tries the next one. It reads URIs and credentials in files again for each
connection. The user needs read on <pipeline>.inbox, and write on <pipeline>.retry,
<pipeline>.return, <pipeline>.failed and <pipeline>.failed.route. To serve re-created work queues,
it needs write on amq.default. For a delayed exchange, it needs read on <name>.delay.inbox, and write on
<name>.deliver, <name>.delay.unrouted and the levels. The attribute "worker_permissions" has all
these permissions as patterns.

With --listen, the worker serves three pages. /metrics is for Prometheus. /readyz answers 200 if
the worker consumes at least one inbox, and lists the problems of all. /healthz says that the
process runs. Without a host, the worker listens on 127.0.0.1.

On SIGTERM or SIGINT, the worker finishes the messages in flight, within --drain-timeout, and stops.
A second signal stops it at once. Exit codes: 0 stopped, 1 failed or not finished in time, 2 wrong
configuration, 3 stopped by a second signal.`

const workerExample = `  # worker.json: {"pipelines":[{"version":1,"name":"orders","vhost":"/","delays":["5s","30s","5m"],
  #   "max_attempts":4,"retry_on":["rejected"],"work_queues":{"orders.created":{}}}]}
  RABBITMQ_URI=amqp://retry:secret@rabbitmq:5672 rabbitmq-retry worker --config worker.json

  # Check the configuration, and consume nothing.
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

const workerName = "worker"

func newWorkerCommand(getenv func(string) string) *cobra.Command {
	o := &workerOptions{connection: cli.Connection{Getenv: getenv}, config: cli.Config{Getenv: getenv}}
	cmd := &cobra.Command{
		Use:     workerName,
		Short:   "Retry the rejected messages of pipelines, and delay messages of delayed exchanges",
		Long:    workerHelp,
		Example: workerExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd) },
	}
	o.config.AddFlags(cmd, "the configuration")
	o.connection.AddFlags(cmd)
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&o.drainTimeout, "drain-timeout", worker.DefaultDrainTimeout, "how long a stopping worker finishes messages in flight")
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
	options.Metrics = metrics.New(release.Version())
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

// heapFloor keeps the collector from running often over a small heap, which took an eighth of the processor time. GOGC 400
// would be as fast, but 100 messages of 1 MiB then took 97 MiB instead of 55 MiB. This memory is never touched, so it is
// never resident.
const heapFloor = 8 << 20
