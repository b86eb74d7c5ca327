package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/probe"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/reload"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Environment variables.
const (
	envListen    = "RABBITMQ_RETRY_LISTEN"
	envLogFormat = "RABBITMQ_RETRY_LOG_FORMAT"
	envLogLevel  = "RABBITMQ_RETRY_LOG_LEVEL"
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
	connection                  cli.Connection
	config                      cli.Config
	listen, logFormat, logLevel string
	// level is the parsed logLevel.
	level        slog.Level
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
		Args:    cli.Arguments(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd) },
	}
	o.config.AddFlags(cmd, "the configuration")
	o.connection.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "",
		"`address` for /healthz, /readyz and /metrics, such as 15695 (loopback) or 0.0.0.0:15695 (default: $"+envListen+", or none)")
	flags.StringVar(&o.logFormat, "log-format", "", "text or json (default: $"+envLogFormat+", or text)")
	flags.StringVar(&o.logLevel, "log-level", "",
		"debug (a line per message), info, warn or error (default: $"+envLogLevel+", or info)")
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
	if err := o.complete(); err != nil {
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
	// The floor keeps the collector from running often over a small heap, which took an eighth of the processor time.
	// GOGC 400 would be as fast, but 100 messages of 1 MiB then took 97 MiB instead of 55 MiB. This memory is never
	// touched, so it is never resident.
	floor := make([]byte, 8<<20)
	defer runtime.KeepAlive(floor)
	return cli.Runtime(worker.Run(ctx, options))
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

// complete reads the environment for flags that are not set, and checks all values. Its errors do not quote values, since one
// can be a URI in the wrong place.
func (o *workerOptions) complete() (err error) {
	from := func(value *string, flag, env string) string {
		if *value != "" {
			return flag
		}
		*value = o.config.Getenv(env)
		return "$" + env
	}
	if name := from(&o.listen, "--listen", envListen); o.listen != "" {
		if o.listen, err = probe.ParseAddress(o.listen); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if name := from(&o.logFormat, "--log-format", envLogFormat); !slices.Contains([]string{"", "text", "json"}, o.logFormat) {
		return fmt.Errorf("%s: must be text or json", name)
	}
	if name := from(&o.logLevel, "--log-level", envLogLevel); o.logLevel != "" && o.level.UnmarshalText([]byte(o.logLevel)) != nil {
		return fmt.Errorf("%s: must be debug, info, warn or error", name)
	}
	return nil
}

func (o *workerOptions) logger(out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: o.level}
	if o.logFormat == "json" {
		options.ReplaceAttr = asText
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// asText writes durations and addresses as the text format does, so JSON has "282ms", too.
func asText(_ []string, a slog.Attr) slog.Attr {
	switch value := a.Value.Any().(type) {
	case time.Duration, net.Addr:
		a.Value = slog.StringValue(fmt.Sprint(value))
	}
	return a
}

// serve answers probes and scrapes, if they are enabled, until stop is called.
func (o *workerOptions) serve(ctx context.Context, set *metrics.Set, log *slog.Logger) (stop func(), err error) {
	if o.listen == "" {
		return func() {}, nil
	}
	listener, err := probe.Listen(ctx, o.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	log.Info("serving /healthz, /readyz and /metrics", "address", listener.Addr())
	return probe.Serve(ctx, listener, probe.Handler(ctx, set), log), nil
}
