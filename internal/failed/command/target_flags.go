package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// targetFlags name a command's queue.
type targetFlags struct {
	connection   cli.Connection
	source       cli.Config
	vhost, queue string
	// endpoint is the address of the management API, "" for the address in the environment.
	endpoint string
}

func newTarget(getenv func(string) string) targetFlags {
	return targetFlags{connection: cli.Connection{Getenv: getenv}, source: cli.Config{Getenv: getenv}}
}

func (t *targetFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.queue, "queue", "",
		"name of any `queue`, instead of a pipeline; after a pipeline's name, a failed_queue that it declares for work queues")
	t.addConnection(cmd, "pipeline")
}

// addConnection adds the flags of the brokers and the vhost.
func (t *targetFlags) addConnection(cmd *cobra.Command, of string) {
	cmd.Flags().StringVar(&t.vhost, "vhost", "",
		"`vhost` of the queue (default: the "+of+"'s vhost in the configuration, or the AMQP URI's path)")
	t.source.AddFlags(cmd, "the worker's configuration, for the vhost")
	t.connection.AddFlags(cmd)
	cmd.ValidArgsFunction = t.completePipelines
}

func (t *targetFlags) addEndpoint(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.endpoint, "endpoint", "", "`URL` of the management API (default: $"+cli.EnvEndpoint+")")
}

// managed reports whether the user gave the management API's address.
func (t *targetFlags) managed() bool {
	return cmp.Or(t.endpoint, t.source.Getenv(cli.EnvEndpoint)) != ""
}

// endpointBy is the flag or the variable with the management API's address.
func (t *targetFlags) endpointBy() string {
	return map[bool]string{true: "--endpoint", false: "$" + cli.EnvEndpoint}[t.endpoint != ""]
}

// unlisted is why the management API does not list a vhost.
func (t *targetFlags) unlisted(vhost string, err error) error {
	if broker.IsNotFound(err) {
		err = errors.New("it does not exist, or the user has no permissions in it")
	}
	return cli.RuntimeError{Err: fmt.Errorf("read vhost %q by the management API (--vhost, %s): %w", vhost, t.endpointBy(), err)}
}

// completePipelines offers the names in the configuration.
func (t *targetFlags) completePipelines(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	config, err := t.config()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return namesIn(config), cobra.ShellCompDirectiveNoFileComp
}

// locate finds the target and removes the pipeline's name from the arguments. With --queue, a pipeline's name is optional: it
// is there if there are more arguments than others.
func (t *targetFlags) locate(args []string, others int) (*operation.Target, []string, error) {
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
			return nil, nil, errors.New("the name of a pipeline or a queue must not be a URI")
		}
	}
	p := &operation.Target{Brokers: t.connection.Brokers, Vhost: t.vhost, Name: t.queue}
	named, name, rest := len(args) > others || t.queue == "" && len(args) > 0, "", args
	if named {
		name, rest = args[0], args[1:]
	}
	unroutedOf := string(failed.UnroutedOf(t.queue))
	if err := refusal(config, cmp.Or(name, unroutedOf)); err != nil && t.vhost == "" {
		return nil, nil, err
	}
	switch {
	case t.queue == "" && !named:
		return nil, nil, noPipeline(config)
	case t.queue != "" && (!named || name == unroutedOf): // a delayed exchange and its unrouted queue share the name
		err = chooseDelayed(p, unroutedOf, config)
	default:
		err = choose(p, name, config)
	}
	p.Vhost = cmp.Or(p.Vhost, uris[0].Vhost())
	return p, rest, err
}

// refusal is why an element of this name cannot be read. Then its vhost is not known, either.
func refusal(config workerconfig.Config, name string) error {
	for _, r := range config.Refused {
		if name != "" && (r.ID.Name == name || !r.Identified()) {
			return fmt.Errorf("correct the configuration, or write --vhost to do without it: %w", r.Err)
		}
	}
	return nil
}

func noPipeline(config workerconfig.Config) error {
	if names := namesIn(config); len(names) > 0 {
		return fmt.Errorf("which pipeline or delayed exchange? Write --queue, or its name: %s", strings.Join(names, ", "))
	}
	return errors.New("which pipeline or delayed exchange? Write its name, or --queue; " +
		"rabbitmq-retry status with --config or --endpoint shows all")
}

func namesIn(config workerconfig.Config) []string {
	return partsIn(config, func(id workerconfig.ID) string { return id.Name })
}

// partsIn are a part of each element's id, sorted and without repetitions.
func partsIn(config workerconfig.Config, part func(workerconfig.ID) string) (parts []string) {
	for _, w := range config.Pipelines {
		parts = append(parts, part(workerconfig.PipelineID(w)))
	}
	for _, w := range config.DelayedExchanges {
		parts = append(parts, part(workerconfig.DelayedExchangeID(w)))
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

// config is empty if the user gave no configuration.
func (t *targetFlags) config() (workerconfig.Config, error) {
	if !t.source.Given() {
		return workerconfig.Config{}, nil
	}
	config, _, err := t.source.Read()
	return config, err
}

// choose finds the pipeline and the delayed exchange with the name, if the configuration has them. A queue that the target
// has already keeps failed messages of that pipeline's work queues.
func choose(t *operation.Target, name string, config workerconfig.Config) (err error) {
	t.Pipeline = pipeline.Names(name)
	t.Name = cmp.Or(t.Name, t.Pipeline.FailedQueue())
	if t.Worker, err = only(config.Pipelines, workerconfig.PipelineID, operation.KindPipeline, name, t.Vhost); err != nil {
		return err
	}
	if t.Worker != nil {
		t.Vhost = t.Worker.Vhost
	}
	if err := chooseDelayed(t, name, config); err != nil {
		return err
	}
	if t.Worker == nil && t.Delaying == nil && len(namesIn(config)) > 0 && t.Vhost == "" {
		return fmt.Errorf("there is no pipeline or delayed exchange %q%s in the configuration, which has: %s",
			name, similar.Hint(name, slices.Values(namesIn(config))), strings.Join(namesIn(config), ", "))
	}
	if t.Pipeline.OwnsQueue(t.Name) && t.Name != t.Pipeline.FailedQueue() {
		return fmt.Errorf("--queue: %q is one of pipeline %q's own queues, and has no failed messages", t.Name, t.Pipeline)
	}
	return nil
}

// chooseDelayed finds the delayed exchange, if the configuration has it.
func chooseDelayed(t *operation.Target, name string, config workerconfig.Config) (err error) {
	t.Delaying, err = only(config.DelayedExchanges, workerconfig.DelayedExchangeID, operation.KindDelayed, name, t.Vhost)
	if t.Delaying != nil {
		t.Vhost = t.Delaying.Vhost
	}
	return err
}

// only finds the element with the name, and in the vhost unless that is "". It returns nil if there is no such element, and
// an error if there are several.
func only[W any](elements []W, id func(W) workerconfig.ID, kind, name, vhost string) (found *W, err error) {
	for i, w := range elements {
		if id := id(w); id.Name == name && (vhost == "" || id.Vhost == vhost) {
			if found != nil {
				return nil, fmt.Errorf("there is a %s %q in several vhosts: write --vhost", kind, name)
			}
			found = &elements[i]
		}
	}
	return found, nil
}

// advise adds to an operation's error how the user can change the command line.
func (t *targetFlags) advise(of *operation.Target, err error) error {
	var unreadable *transfer.UnreadableError
	switch {
	case amqpconn.IsCode(err, amqp.NotAllowed):
		return fmt.Errorf("%w; if the vhost is not %q, write --vhost without percent-encoding, such as --vhost /, "+
			"and otherwise give the user permissions in it", err, of.Vhost)
	case errors.Is(err, transfer.ErrNoQueue):
		return fmt.Errorf("%w %q%s", err, of.Vhost, t.adviseName(string(of.Pipeline)))
	case errors.Is(err, operation.ErrNoRun):
		return fmt.Errorf("%w; rabbitmq-retry failed list %s --group-by run lists the runs", err, t.argument(of))
	case !errors.As(err, &unreadable):
		return err
	case of.Entrance() == "":
		return fmt.Errorf("%w: take it out with a client that speaks AMQP 1.0, and run the command again", err)
	}
	return fmt.Errorf("%w; rabbitmq-retry failed repair %s replaces it by a copy that can be read", err, t.argument(of))
}

// adviseName advises about a queue that does not exist, of the pipeline with the name unless the user named the queue.
func (t *targetFlags) adviseName(name string) string {
	switch {
	case t.queue != "":
		return "; correct --queue or --vhost"
	case failed.UnroutedOf(name) != "" || failed.PipelineOf(name) != "":
		return fmt.Sprintf("; if %q is a queue, write --queue %s", name, pasted(name))
	}
	return fmt.Sprintf(": is there a pipeline %q? For a delayed exchange, write --queue %s", name, pasted(delayed.Names(name).UnroutedQueue()))
}

// pasted quotes a text as one word for a shell, and escapes invisible characters.
func pasted(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,"
	switch {
	case text != "" && strings.Trim(text, plain) == "" && text[0] != '-':
		return text
	case failed.Printable(text) != text || strings.ContainsAny(text, "\n\t"):
		quoted := fmt.Sprintf("%+q", text)
		return "$'" + strings.ReplaceAll(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), "'", `\'`) + "'"
	default:
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
}

// argument names the queue as on the command line.
func (t *targetFlags) argument(of *operation.Target) string {
	text := "--queue " + pasted(of.Name)
	if of.Pipeline != "" {
		text = pasted(string(of.Pipeline))
	}
	if of.OfWorkQueues() {
		text += " --queue " + pasted(of.Name)
	}
	if t.vhost != "" {
		text += " --vhost " + pasted(of.Vhost)
	}
	return text
}
