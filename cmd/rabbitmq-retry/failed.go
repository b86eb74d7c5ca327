package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

const failedHelp = `Shows what is in the failed queue of a pipeline, and puts messages back to work. With --queue it is
any queue, such as the error queue of NServiceBus, MassTransit, Spring or Celery.

The broker's address is an AMQP URI, as the worker's. Its user is an operator's, since the worker's may
not read the failed queue: list and show need the permission read on <pipeline>.failed; replay also
write on <pipeline>.return, or on amq.default with --to or --queue.

The vhost is that of the pipeline in the configuration, if there is one ($RABBITMQ_RETRY_CONFIG or --config),
and else --vhost.

Exit codes: 0 all done, 1 something stayed or failed, 2 wrong usage, file or configuration, 3 stopped by a
second signal.`

func newFailedCommand(ctx context.Context, getenv func(string) string) *cobra.Command {
	command := &cobra.Command{
		Use:               "failed",
		Short:             "See, replay, export and delete failed messages",
		Long:              failedHelp,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return noneEmpty(cmd.Flags()) },
	}
	command.AddCommand(newFailedListCommand(ctx, getenv), newFailedShowCommand(ctx, getenv), newFailedReplayCommand(ctx, getenv),
		newFailedExportCommand(ctx, getenv), newFailedImportCommand(ctx, getenv), newFailedDeleteCommand(ctx, getenv))
	return command
}

// noneEmpty refuses a flag with an empty value, which a variable that is not set leaves, and a limit of 0: they would
// mean all messages, or that nothing is kept.
func noneEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), "")
		}
		switch {
		case err != nil:
		case value == "":
			err = fmt.Errorf("--%s: is empty", f.Name)
		case value == "0" && (f.Name == "limit" || f.Name == "scan"):
			err = fmt.Errorf("--%s 0: must be 1 or more; leave it out for all messages", f.Name)
		}
	})
	return err
}

// target is the queue that a command is about.
type target struct {
	connection
	configFile, vhost, queue string
}

// place is a target that was found.
type place struct {
	pass.Queue
	Vhost string
	// Pipeline is "" for a queue of none.
	Pipeline pipeline.Names
	// Worker is the pipeline's configuration, nil if it is not known.
	Worker *pipeline.Worker

	brokers amqpconn.Brokers
	// frameMax is that of the last connection.
	frameMax int
	// user is who logs in.
	user string
}

func (t *target) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&t.queue, "queue", "", "name of any `queue`, in place of a pipeline")
	flags.StringVar(&t.configFile, "config", "", "`file` with the worker's configuration, for the vhost (default: the JSON in $"+envConfig+")")
	flags.StringVar(&t.vhost, "vhost", "", "`vhost` of the queue (default: that of the pipeline in the configuration, or /)")
	t.connection.addFlags(cmd)
	cmd.ValidArgsFunction = t.completePipelines
}

// completePipelines offers the names in the configuration.
func (t *target) completePipelines(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	config, err := t.config()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return namesIn(config), cobra.ShellCompDirectiveNoFileComp
}

// find takes the pipeline's name off the arguments, unless there is a queue.
func (t *target) find(args []string) (*place, []string, error) {
	if _, err := t.brokers(); err != nil {
		return nil, nil, err
	}
	config, err := t.config()
	if err != nil {
		return nil, nil, err
	}
	p := &place{Vhost: t.vhost, brokers: t.brokers}
	p.Open = p.open
	for _, name := range append([]string{t.queue}, args[:min(1, len(args))]...) {
		if strings.Contains(name, "://") {
			return nil, nil, errors.New("the name of a pipeline or a queue is needed, and is a URI")
		}
	}
	if t.queue != "" {
		p.Name = t.queue
		if p.Vhost == "" {
			p.Vhost = "/"
		}
		return p, args, nil
	}
	if len(args) == 0 {
		return nil, nil, noPipeline(config)
	}
	if err := p.choose(args[0], config); err != nil {
		return nil, nil, err
	}
	p.Pipeline = pipeline.Names(args[0])
	p.Name = p.Pipeline.FailedQueue()
	return p, args[1:], nil
}

// findOnly is find for commands that have no other argument.
func (t *target) findOnly(args []string) (*place, error) {
	place, rest, err := t.find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%q: with --queue there is no pipeline to name", rest[0])
	}
	return place, err
}

func noPipeline(config workerconfig.Config) error {
	if names := namesIn(config); len(names) > 0 {
		return fmt.Errorf("which pipeline? Write its name: %s; or --queue", strings.Join(names, ", "))
	}
	return errors.New("which pipeline? Write its name, or --queue")
}

func namesIn(config workerconfig.Config) []string {
	names := make([]string, len(config.Pipelines))
	for i := range config.Pipelines {
		names[i] = config.Pipelines[i].Name
	}
	return names
}

// choose finds the pipeline in the configuration, if there is one.
func (p *place) choose(name string, config workerconfig.Config) error {
	for i := range config.Pipelines {
		worker := &config.Pipelines[i]
		if worker.Name != name || p.Vhost != "" && worker.Vhost != p.Vhost {
			continue
		}
		if p.Worker != nil {
			return fmt.Errorf("there is a pipeline %q in several vhosts: write --vhost", name)
		}
		p.Worker = worker
	}
	switch {
	case p.Worker != nil:
		p.Vhost = p.Worker.Vhost
	case len(config.Pipelines) > 0 && p.Vhost == "":
		return fmt.Errorf("there is no pipeline %q in the configuration, which has: %s", name, strings.Join(namesIn(config), ", "))
	case p.Vhost == "":
		p.Vhost = "/"
	}
	return nil
}

// config is empty if there is none.
func (t *target) config() (workerconfig.Config, error) {
	if t.configFile == "" && t.getenv(envConfig) == "" {
		return workerconfig.Config{}, nil
	}
	source := source{connection: t.connection, configFile: t.configFile}
	config, _, err := source.readConfig()
	return config, err
}

// open connects to the first broker that serves.
func (p *place) open(ctx context.Context, purpose string) (conn amqpconn.Raw, err error) {
	client := amqpconn.Client{Name: "rabbitmq-retry failed " + p.Name + " " + purpose, Product: "rabbitmq-retry", Version: version}
	_, err = p.brokers.Try(ctx, slog.New(slog.DiscardHandler), 0, func(uri amqpconn.URI) error {
		conn, err = amqpconn.ConnectRaw(ctx, uri, p.Vhost, client)
		p.user = uri.Username()
		return err
	})
	if err == nil {
		p.frameMax = conn.Config.FrameSize
	}
	return conn, err
}

// unknown adds to an error about a queue of a pipeline what may be wrong.
func (p *place) unknown(err error) error {
	if p.Pipeline != "" && errors.Is(err, pass.ErrNoQueue) {
		return fmt.Errorf("%w %q: is there a pipeline %q?", err, p.Vhost, p.Pipeline)
	}
	return err
}

// complete offers the values of flags that have fixed ones.
func complete(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}
