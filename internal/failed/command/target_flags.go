package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// targetFlags name the queue that a command is about.
type targetFlags struct {
	caller       caller
	connection   cli.Connection
	source       cli.Config
	vhost, queue string
	// endpoint is that of the management API, "" for that of the environment.
	endpoint string
}

func newTarget(caller caller) targetFlags {
	return targetFlags{caller: caller, connection: cli.NewConnection(caller.getenv), source: cli.Config{Getenv: caller.getenv}}
}

func (t *targetFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&t.queue, "queue", "",
		"name of any `queue`, in place of a pipeline; after a pipeline's name, the failed_queue that it declares for work queues")
	flags.StringVar(&t.vhost, "vhost", "", "`vhost` of the queue (default: the pipeline's in the configuration, or the path of the AMQP URI)")
	t.source.AddFlags(cmd, "the worker's configuration, for the vhost")
	t.connection.AddFlags(cmd)
	cmd.ValidArgsFunction = t.completePipelines
}

// completePipelines offers the names in the configuration.
func (t *targetFlags) completePipelines(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	config, err := t.config()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return namesIn(config), cobra.ShellCompDirectiveNoFileComp
}

// locate takes the pipeline's name off the arguments. With a queue there need not be one: there is if there are more than so
// many others.
func (t *targetFlags) locate(args []string, others int) (*target, []string, error) {
	uris, err := t.connection.Brokers()
	if err != nil {
		return nil, nil, err
	}
	config, err := t.config()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range append([]string{t.queue}, args[:min(1, len(args))]...) {
		if strings.Contains(name, "://") {
			return nil, nil, errors.New("the name of a pipeline or a queue is needed, and is a URI")
		}
	}
	p := t.target(t.vhost)
	p.Name = t.queue
	named, name, rest := len(args) > others || t.queue == "" && len(args) > 0, "", args
	if named {
		name, rest = args[0], args[1:]
	}
	switch unroutedOf := string(failed.UnroutedOf(t.queue)); {
	case t.queue == "" && !named:
		return nil, nil, noPipeline(config)
	case t.queue == "":
		err = p.choose(name, config)
		p.Name = p.Pipeline.FailedQueue()
	case !named || name == unroutedOf: // the delayed exchange's name, which the queue's has, too
		err = p.chooseDelayed(unroutedOf, config)
	default:
		err = p.ofPipeline(name, config)
	}
	p.Vhost = cmp.Or(p.Vhost, uris[0].Vhost())
	return p, rest, err
}

// find is locate for commands about failed messages. A delayed exchange has a failed queue only if a pipeline has its name, too.
func (t *targetFlags) find(args []string, others int) (*target, []string, error) {
	p, rest, err := t.locate(args, others)
	if err == nil && p.Pipeline != "" && p.Worker == nil && p.Delaying != nil {
		err = fmt.Errorf("%q is a delayed exchange: write --queue %s", p.Pipeline, pasted(delayed.Names(p.Pipeline).UnroutedQueue()))
	}
	return p, rest, err
}

// findOnly is find for commands that have no other argument.
func (t *targetFlags) findOnly(args []string) (*target, error) {
	target, _, err := t.find(args, 0)
	return target, err
}

func noPipeline(config workerconfig.Config) error {
	if names := namesIn(config); len(names) > 0 {
		return fmt.Errorf("which pipeline or delayed exchange? Write its name: %s; or --queue", strings.Join(names, ", "))
	}
	return errors.New("which pipeline or delayed exchange? Write its name, or --queue; " +
		"rabbitmq-retry status with --config or --endpoint shows all")
}

func namesIn(config workerconfig.Config) []string {
	var names []string
	for i := range config.Pipelines {
		names = append(names, config.Pipelines[i].Name)
	}
	for i := range config.DelayedExchanges {
		names = append(names, config.DelayedExchanges[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// config is empty if there is none.
func (t *targetFlags) config() (workerconfig.Config, error) {
	if !t.source.Given() {
		return workerconfig.Config{}, nil
	}
	config, _, err := t.source.Read()
	return config, err
}
