package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

type statusOptions struct {
	targetFlags
	format       string
	look, levels bool
	// file is the file of a page.
	file string
	// notes name elements of the configuration that are not shown.
	notes []string
	// live are the vhosts as the management API lists them, none if the user did not give its address.
	live []topology.Vhost
}

// NewStatus is the command "status".
func NewStatus(getenv func(string) string) *cobra.Command {
	o := &statusOptions{targetFlags: newTarget(getenv)}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Count what is in the queues of pipelines and delayed exchanges",
		Long: `Without a name, it writes a line for each pipeline and delayed exchange. The line counts the messages in the inbox, the
inbox's consumers, the waiting messages and the failed messages. If you give the address of the management API, it finds
the pipelines and delayed exchanges in the vhost, and otherwise in the worker's configuration. With a name, it writes a
line for each queue.

It counts only ready messages. It leaves out messages that a consumer holds, that a quorum queue itself delays (engine
native), or that a level or a refused queue cannot deliver. "?" is a number that is not known, and NOTE says why.
Without configuration and management API, the retry queues are not known. DUE BY is when the last message of a delayed
exchange's level is delivered at the latest. By the configuration, levels of an earlier precision are not counted.

Exit code 4: a queue is missing, the user cannot look at it, or an inbox has no consumer.

Needs: read on each of these queues, as in operator_permissions["status"] of a pipeline or a delayed exchange. RabbitMQ
before 4.3 needs no permission to count, but --look needs read on the failed queues. The management API needs the tag
management. Its user is the user of AMQP, or $RABBITMQ_USERNAME with $RABBITMQ_PASSWORD.`,
		Example: `  # All pipelines and delayed exchanges of the worker's configuration, and the first failure in each.
  rabbitmq-retry status --config worker.json --look

  # The queues of one of them.
  rabbitmq-retry status orders --config worker.json
  rabbitmq-retry status orders --config worker.json -o json

  # A page for a browser, with the findings of the audit.
  rabbitmq-retry status --endpoint http://localhost:15672 -o html --file status.html

  # What waits in each level of a delayed exchange, and when the last of it is due.
  rabbitmq-retry status events --config worker.json --levels`,
		Args: cli.Arguments(0, 1),
		RunE: o.run,
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&o.format, "output", "o", cli.Table, "table, json or html")
	flags.StringVar(&o.file, "file", "", "`file` of the page, which must not exist; needs -o html")
	flags.BoolVar(&o.look, "look", false, "show when the first message of each failed queue failed, and put it back")
	flags.BoolVar(&o.levels, "levels", false, "with a name, write a line for each level of the delayed exchange")
	o.addEndpoint(cmd)
	complete(cmd, "output", cli.Table, cli.JSON, asHTML)
	return cmd
}

// run writes a line for each pipeline and delayed exchange. If the user named one, it writes a line for each of its queues.
func (o *statusOptions) run(cmd *cobra.Command, args []string) error {
	write := o.writeSummaries
	if len(args) > 0 || o.queue != "" {
		write = o.writeQueues
	} else if o.levels {
		return errors.New("--levels: write the name of a delayed exchange")
	}
	if err := cli.CheckFormat(o.format, cli.Table, cli.JSON, asHTML); err != nil {
		return err
	}
	if err := (&pageFlags{file: o.file}).check(o.format); err != nil {
		return err
	}
	var trouble error
	count := func(w io.Writer) error {
		summaries, err := o.count(cmd.Context(), args)
		if err != nil {
			return err
		}
		trouble = operation.Trouble(summaries)
		for i := range summaries {
			if !o.levels {
				summaries[i].Queues = summaries[i].WithoutLevels()
			}
		}
		return cli.Runtime(write(w, summaries))
	}
	o.notes = o.notShown()
	var err error
	if o.format == asHTML {
		write = o.writePage
		err = writeFile(o.file, count)
	} else {
		err = count(cmd.OutOrStdout())
	}
	for _, line := range o.notes {
		cmd.PrintErrln(line)
	}
	if err == nil && trouble != nil {
		err = cli.FindingError{Err: trouble}
	}
	return err
}

func (o *statusOptions) count(ctx context.Context, args []string) ([]operation.Summary, error) {
	var counting operation.Counting
	defer counting.Close()
	if o.managed() {
		client, err := o.connection.Management(o.endpoint)
		if err != nil {
			return nil, err
		}
		counting.Ask = func(ctx context.Context, vhost, queue string) (transfer.Count, error) {
			return countOf(ctx, client, vhost, queue)
		}
	}
	summaries, err := o.subjects(ctx, &counting, args)
	if err != nil {
		return nil, err
	}
	if at, err := counting.Count(ctx, summaries, o.look); err != nil {
		return nil, cli.RuntimeError{Err: o.advise(at, err)}
	}
	return summaries, nil
}

// countOf counts a queue by the statistics of the management API.
func countOf(ctx context.Context, client *broker.Client, vhost, queue string) (count transfer.Count, err error) {
	info, err := client.Queue(ctx, vhost, queue)
	switch {
	case broker.IsNotFound(err):
		return count, fmt.Errorf("queue %q %w", queue, transfer.ErrNoQueue)
	case err == nil && (info.Ready == nil || info.Consumers == nil):
		return count, fmt.Errorf("%w; the management API has no counts of queue %q", amqpconn.ErrNeedsConfigure, queue)
	case err != nil:
		return count, err
	}
	return transfer.Count{Ready: int(*info.Ready), Consumers: int(*info.Consumers)}, nil
}

// notShown names the elements of the configuration that this release cannot read.
func (o *statusOptions) notShown() (lines []string) {
	if config, err := o.config(); err == nil && !o.managed() {
		for _, r := range config.Refused {
			lines = append(lines, "not shown: "+failed.Printable(r.Err.Error()))
		}
	}
	return lines
}

// subjects are what the user named, or else all pipelines and delayed exchanges. These come from the management API, or else
// from the configuration.
func (o *statusOptions) subjects(ctx context.Context, c *operation.Counting, args []string) ([]operation.Summary, error) {
	if len(args) > 0 || o.queue != "" {
		return o.subjectsNamed(ctx, c, args)
	}
	uris, err := o.connection.Brokers()
	if err != nil {
		return nil, err
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	switch {
	case o.managed():
		vhosts := []string{cmp.Or(o.vhost, uris[0].Vhost())}
		configured := partsIn(config, func(id workerconfig.ID) string { return id.Vhost })
		if o.vhost == "" && len(configured) > 0 {
			vhosts = configured
		}
		all, err := o.listed(ctx, vhosts...)
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("there is no pipeline or delayed exchange in the vhost %q: write another --vhost", strings.Join(vhosts, ", "))
		}
		return all, err
	case !o.source.Given():
		return nil, noPipeline(config)
	}
	all := operation.Configured(o.connection.Brokers, config, o.vhost)
	if len(all) == 0 {
		return nil, fmt.Errorf("--vhost: the configuration has no pipeline or delayed exchange in %q; without --vhost, all are counted", o.vhost)
	}
	return all, nil
}

// listed are the pipelines and delayed exchanges that the broker has in these vhosts.
func (o *statusOptions) listed(ctx context.Context, vhosts ...string) (all []operation.Summary, err error) {
	client, err := o.connection.Management(o.endpoint)
	if err != nil {
		return nil, err
	}
	for _, vhost := range vhosts {
		live, err := client.List(ctx, vhost)
		if err != nil {
			return nil, o.unlisted(vhost, err)
		}
		o.live = append(o.live, live)
		all = append(all, operation.Live(o.connection.Brokers, live.Topology, vhost)...)
	}
	return all, nil
}

// subjectsNamed are the pipeline and the delayed exchange with the name, or the queue that was named.
func (o *statusOptions) subjectsNamed(ctx context.Context, c *operation.Counting, args []string) ([]operation.Summary, error) {
	p, _, err := o.locate(args, 0)
	if err != nil {
		return nil, err
	}
	var named []operation.Summary
	if p.Pipeline != "" && o.managed() {
		all, err := o.listed(ctx, p.Vhost)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, s := range all {
			names = append(names, s.Name)
		}
		named = slices.DeleteFunc(all, func(s operation.Summary) bool { return s.Name != string(p.Pipeline) })
		if len(named) == 0 {
			return nil, fmt.Errorf("there is no pipeline or delayed exchange %q%s in the vhost %q: correct its name or --vhost",
				p.Pipeline, similar.Hint(string(p.Pipeline), slices.Values(names)), p.Vhost)
		}
	} else {
		named = c.Named(ctx, p)
	}
	named[0].Parking(p.Name)
	return named, nil
}

// number is a count, "?" if it is not known.
func number(n *int) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func (o *statusOptions) writeQueues(w io.Writer, summaries []operation.Summary) error {
	statuses := []operation.QueueStatus{}
	for _, s := range summaries {
		statuses = append(statuses, s.Queues...)
	}
	if o.format == cli.JSON {
		return cli.WriteJSON(w, map[string]any{"queues": statuses}, "  ")
	}
	waiting := slices.ContainsFunc(statuses, func(s operation.QueueStatus) bool { return !s.DueBy.IsZero() })
	lines := [][]string{{"QUEUE", "READY", "CONSUMERS", "OLDEST", "DUE BY", "NOTE"}}
	for _, s := range statuses {
		oldest := "-"
		if s.Role == operation.Parks {
			oldest = oldestOf(s.Ready, s.Oldest)
		}
		lines = append(lines, []string{
			failed.Printable(s.Queue), number(s.Ready), number(s.Consumers), oldest, view.Time(s.DueBy), failed.Printable(cmp.Or(s.Note, "-")),
		})
	}
	return writeColumns(w, lines, map[string]bool{"OLDEST": o.look, "DUE BY": waiting})
}

// oldestOf is when the first message failed. It is "?" if that is not known.
func oldestOf(messages *int, at time.Time) string {
	if at.IsZero() && (messages == nil || *messages > 0) {
		return "?"
	}
	return view.Time(at)
}

func (o *statusOptions) writeSummaries(w io.Writer, summaries []operation.Summary) error {
	if o.format == cli.JSON {
		return cli.WriteJSON(w, map[string]any{"summaries": summaries}, "  ")
	}
	several := slices.ContainsFunc(summaries, func(s operation.Summary) bool { return s.Vhost != summaries[0].Vhost })
	lines := [][]string{{"VHOST", "NAME", "KIND", "INBOX", "CONSUMERS", "WAITING", "FAILED", "OLDEST", "NOTE"}}
	for _, s := range summaries {
		cell := func(role operation.Role, n *int) string {
			if !slices.ContainsFunc(s.Queues, func(q operation.QueueStatus) bool { return q.Role == role }) {
				return "-"
			}
			return number(n)
		}
		lines = append(lines, []string{
			failed.Printable(s.Vhost), failed.Printable(s.Name), s.Kind, cell(operation.Receives, s.Inbox), cell(operation.Receives, s.Consumers),
			cell(operation.Waits, s.Waiting), number(s.Failed), oldestOf(s.Failed, s.Oldest), failed.Printable(cmp.Or(s.Note, "-")),
		})
	}
	return writeColumns(w, lines, map[string]bool{"VHOST": several, "OLDEST": o.look})
}

// writeColumns writes a table without the columns that are not wanted. The first line has the columns' names.
func writeColumns(w io.Writer, lines [][]string, wanted map[string]bool) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		var cells []string
		for i, name := range lines[0] {
			if is, optional := wanted[name]; is || !optional {
				cells = append(cells, line[i])
			}
		}
		_, _ = fmt.Fprintln(columns, strings.Join(cells, "\t"))
	}
	return columns.Flush()
}
