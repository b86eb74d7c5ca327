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

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

const statusExample = `  # All pipelines and delayed exchanges of the worker's configuration, and what failed first in each.
  rabbitmq-retry status --config worker.json --look

  # The queues of one of them.
  rabbitmq-retry status orders --config worker.json
  rabbitmq-retry status orders --config worker.json -o json

  # What waits in each level of a delayed exchange, and when the last of it is due.
  rabbitmq-retry status events --config worker.json --levels`

// queueStatus is what is known of a queue.
type queueStatus struct {
	Queue string `json:"queue"`
	// Ready and Consumers are nil if they are not known.
	Ready     *int `json:"ready"`
	Consumers *int `json:"consumers"`
	// Oldest is when the first message failed.
	Oldest time.Time `json:"oldest,omitzero"`
	// DueBy is when the last of the messages that wait in a level will have been delivered.
	DueBy time.Time `json:"due_by,omitzero"`
	// Note is what is wrong, or not known.
	Note string `json:"note,omitempty"`

	of watched
	// unasked says that nothing is wrong.
	unasked bool
}

// summary is what is known of a pipeline or a delayed exchange. Numbers that are not known, or do not exist, are nil.
type summary struct {
	Vhost     string    `json:"vhost"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`
	Inbox     *int      `json:"inbox"`
	Consumers *int      `json:"consumers"`
	Waiting   *int      `json:"waiting"`
	Failed    *int      `json:"failed"`
	Oldest    time.Time `json:"oldest,omitzero"`
	Note      string    `json:"note,omitempty"`

	queues []queueStatus
	notes  []string
}

// statusOptions say what is counted.
type statusOptions struct {
	targetFlags
	format       string
	look, levels bool
}

// NewStatus is the command "status".
func NewStatus(getenv func(string) string, version string) *cobra.Command {
	o := &statusOptions{targetFlags: newTarget(caller{getenv, version})}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Count what is in the queues of pipelines and delayed exchanges",
		Long: `Without a name: a line for each pipeline and delayed exchange, with the messages in its inbox, the inbox's consumers,
and the messages that wait and that failed. Which there are says the management API, if its address is given, for the
vhost; else the worker's configuration. With a name: a line for each of its queues.

Only ready messages are counted, not those that a consumer holds, nor what a quorum queue itself delays (engine
native), nor what a level, or a queue of what was refused, cannot deliver. What is not known is "?", and NOTE says why.
Without configuration and management API, the retry queues are not known. DUE BY is when the last message of a delayed
exchange's level is delivered.

Exit code 4: a queue is missing, may not be looked at, or is an inbox without a consumer.

Needs: read on each of these queues, as operator_permissions["status"] of a pipeline or a delayed exchange has. RabbitMQ
before 4.3 needs no permission to count, but --look needs read on the failed queues. The management API needs the tag
management; its user is that of AMQP, or $RABBITMQ_USERNAME with $RABBITMQ_PASSWORD.`,
		Example: statusExample,
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&o.format, "output", "o", cli.Table, "table or json")
	flags.BoolVar(&o.look, "look", false, "look at the first message of each failed queue, which is put back, and show when it failed")
	flags.BoolVar(&o.levels, "levels", false, "with a name: a line for each level of the delayed exchange")
	flags.StringVar(&o.endpoint, "endpoint", "", "`URL` of the management API (default: $"+cli.EnvEndpoint+")")
	complete(cmd, "output", cli.Table, cli.JSON)
	return cmd
}

func (o *statusOptions) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && o.queue == "" {
		if o.levels {
			return errors.New("--levels: write the name of a delayed exchange")
		}
		return o.overview(cmd, o.format, o.look)
	}
	named := func(ctx context.Context) ([]subject, error) { return o.subjectsNamed(ctx, args) }
	return showStatus(cmd, o.format, o.look, named, o.writeQueues)
}

// overview has a line for each pipeline and delayed exchange.
func (t *targetFlags) overview(cmd *cobra.Command, format string, look bool) error {
	return showStatus(cmd, format, look, t.subjects, func(w io.Writer, summaries []summary) error {
		return writeSummaries(w, summaries, format, look)
	})
}

// showStatus counts what is found, and writes it.
func showStatus(
	cmd *cobra.Command, format string, look bool,
	find func(context.Context) ([]subject, error), write func(io.Writer, []summary) error,
) error {
	if err := cli.CheckFormat(format, cli.Table, cli.JSON); err != nil {
		return err
	}
	subjects, err := find(cmd.Context())
	if err != nil {
		return err
	}
	summaries, err := count(cmd.Context(), subjects, look)
	if err != nil {
		return err
	}
	if err := write(cmd.OutOrStdout(), summaries); err != nil {
		return cli.RuntimeError{Err: err}
	}
	return verdict(summaries)
}

// count asks for all queues, over one connection per vhost.
func count(ctx context.Context, subjects []subject, look bool) ([]summary, error) {
	const atMost = time.Minute
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	connections := map[string]amqpconn.Raw{}
	defer func() {
		for _, conn := range connections {
			amqpconn.HangUp(conn.Connection)
		}
	}()
	summaries := make([]summary, len(subjects))
	for i, s := range subjects {
		conn, connected := connections[s.target.Vhost]
		if !connected {
			var err error
			var refused *amqp.Error
			conn, err = s.target.open(ctx, "count")
			if errors.As(err, &refused) && refused.Code == amqp.NotAllowed && len(subjects) > 1 {
				summaries[i] = s.refused(refused.Reason)
				continue
			}
			if err != nil {
				return nil, cli.RuntimeError{Err: err}
			}
			connections[s.target.Vhost] = conn
		}
		summaries[i] = summary{Vhost: s.target.Vhost, Name: s.name, Kind: s.kind}
		for _, w := range s.queues {
			status, err := s.status(ctx, conn, w)
			if err == nil && look && w.role == parks {
				err = s.oldest(ctx, &status)
			}
			if err != nil {
				return nil, cli.RuntimeError{Err: err}
			}
			if status.Queue != "" {
				summaries[i].add(status)
			}
		}
	}
	return summaries, nil
}

// refused is a summary without numbers, of a vhost that the user may not enter.
func (s subject) refused(why string) summary {
	all := summary{Vhost: s.target.Vhost, Name: s.name, Kind: s.kind}
	for _, w := range s.queues {
		all.add(queueStatus{Queue: w.name, of: w, Note: "may not be looked at"})
	}
	all.Note = why
	return all
}

// status is of no queue, if the pipeline's engine has none of this role.
func (s subject) status(ctx context.Context, conn amqpconn.Raw, w watched) (queueStatus, error) {
	status := queueStatus{Queue: w.name, of: w}
	if w.unknown {
		status.Note, status.unasked = "not counted: --config or --endpoint tells which there are", true
		return status, nil
	}
	count, err := transfer.Queue{Name: w.name}.CountOver(ctx, conn)
	switch {
	case errors.Is(err, transfer.ErrMayNotRead):
		status.Note = needsRead(w.name)
		return status, nil
	case errors.Is(err, transfer.ErrNoQueue) && w.optional:
		exchange := s.target.Pipeline.DeadLetterExchange()
		has, err := s.target.HasExchange(ctx, exchange)
		switch {
		case errors.Is(err, transfer.ErrMayNotRead):
			status.Note = fmt.Sprintf("does not exist; whether it should is not known; needs: read on %q", exchange)
			return status, nil
		case err == nil && !has:
			return queueStatus{}, nil
		}
		status.Note = "does not exist"
		return status, err
	case errors.Is(err, transfer.ErrNoQueue):
		status.Note = "does not exist"
		return status, nil
	case err != nil:
		return status, err
	}
	status.Ready, status.Consumers = &count.Ready, &count.Consumers
	switch {
	case w.role == receiving && count.Consumers == 0:
		status.Note = "no consumer: is a worker running?"
	case w.longest > 0 && count.Ready > 0:
		status.DueBy = time.Now().Add(w.longest + time.Second).UTC().Truncate(time.Second)
	}
	return status, nil
}

// oldest looks at the first message, in a queue that deletes nothing for it.
func (s subject) oldest(ctx context.Context, status *queueStatus) error {
	if status.Ready == nil || *status.Ready == 0 || !status.of.kept {
		return nil
	}
	job := transfer.Job{Scan: 1, Decide: func(e *failed.Entry) transfer.Verdict {
		status.Oldest = e.FailedAt
		return transfer.Verdict{}
	}}
	_, err := transfer.Run(ctx, transfer.Queue{Name: status.Queue, Open: s.target.Open}, job)
	if errors.Is(err, transfer.ErrMayNotRead) {
		status.Note = needsRead(status.Queue)
		return nil
	}
	return s.target.advise(err)
}

func needsRead(queue string) string {
	return fmt.Sprintf("may not be looked at; needs: read on %q", queue)
}

// add counts a queue.
func (s *summary) add(q queueStatus) {
	first := !slices.ContainsFunc(s.queues, func(other queueStatus) bool { return other.of.role == q.of.role })
	sum := func(total **int, n *int) {
		switch {
		case first || n == nil:
			*total = n
		case *total != nil:
			both := **total + *n
			*total = &both
		}
	}
	switch q.of.role {
	case receiving:
		s.Inbox, s.Consumers = q.Ready, q.Consumers
	case waits:
		sum(&s.Waiting, q.Ready)
	case parks:
		sum(&s.Failed, q.Ready)
		if s.Oldest.IsZero() || !q.Oldest.IsZero() && q.Oldest.Before(s.Oldest) {
			s.Oldest = q.Oldest
		}
	}
	if q.Note != "" {
		const shown = 2
		s.notes = append(s.notes, q.Queue+": "+q.Note)
		s.Note = strings.Join(s.notes[:min(shown, len(s.notes))], "; ")
		if more := len(s.notes) - shown; more > 0 {
			s.Note += fmt.Sprintf("; and %d more", more)
		}
	}
	s.queues = append(s.queues, q)
}

// withoutLevels has one line for all levels of a delayed exchange.
func withoutLevels(s summary) []queueStatus {
	var lines []queueStatus
	for _, q := range s.queues {
		if s.Kind != kindDelayed || q.of.role != waits || q.of.unknown {
			lines = append(lines, q)
			continue
		}
		i := slices.IndexFunc(lines, func(l queueStatus) bool { return l.of.role == waits })
		if i < 0 {
			i = len(lines)
			lines = append(lines, queueStatus{Queue: s.Name + ".delay.*", Ready: s.Waiting, Consumers: q.Consumers, of: q.of})
		}
		if q.Consumers == nil {
			lines[i].Consumers = nil
		}
		if q.DueBy.After(lines[i].DueBy) {
			lines[i].DueBy = q.DueBy
		}
		if lines[i].Note == "" && q.Note != "" {
			lines[i].Note = q.Queue + ": " + q.Note
		}
	}
	return lines
}

// number is a count, "?" if it is not known.
func number(n *int) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// writeQueues has a line for each queue.
func (o *statusOptions) writeQueues(w io.Writer, summaries []summary) error {
	statuses := []queueStatus{}
	for _, s := range summaries {
		if !o.levels {
			s.queues = withoutLevels(s)
		}
		statuses = append(statuses, s.queues...)
	}
	if o.format == cli.JSON {
		return cli.WriteJSON(w, map[string]any{"queues": statuses}, "  ")
	}
	waiting := slices.ContainsFunc(statuses, func(s queueStatus) bool { return !s.DueBy.IsZero() })
	lines := [][]string{{"QUEUE", "READY", "CONSUMERS", "OLDEST", "DUE BY", "NOTE"}}
	for _, s := range statuses {
		oldest := "-"
		if s.of.role == parks {
			oldest = oldestOf(s.Ready, s.Oldest)
		}
		lines = append(lines, []string{
			failed.Printable(s.Queue), number(s.Ready), number(s.Consumers), oldest, shownTime(s.DueBy), failed.Printable(cmp.Or(s.Note, "-")),
		})
	}
	return writeColumns(w, lines, map[string]bool{"OLDEST": o.look, "DUE BY": waiting})
}

// oldestOf is when the first of so many messages failed.
func oldestOf(messages *int, at time.Time) string {
	if at.IsZero() && (messages == nil || *messages > 0) {
		return "?"
	}
	return shownTime(at)
}

func writeSummaries(w io.Writer, summaries []summary, format string, look bool) error {
	if format == cli.JSON {
		return cli.WriteJSON(w, map[string]any{"summaries": summaries}, "  ")
	}
	several := slices.ContainsFunc(summaries, func(s summary) bool { return s.Vhost != summaries[0].Vhost })
	lines := [][]string{{"VHOST", "NAME", "KIND", "INBOX", "CONSUMERS", "WAITING", "FAILED", "OLDEST", "NOTE"}}
	for _, s := range summaries {
		cell := func(role role, n *int) string {
			if !slices.ContainsFunc(s.queues, func(q queueStatus) bool { return q.of.role == role }) {
				return "-"
			}
			return number(n)
		}
		lines = append(lines, []string{
			failed.Printable(s.Vhost), failed.Printable(s.Name), s.Kind, cell(receiving, s.Inbox), cell(receiving, s.Consumers),
			cell(waits, s.Waiting), number(s.Failed), oldestOf(s.Failed, s.Oldest), failed.Printable(cmp.Or(s.Note, "-")),
		})
	}
	return writeColumns(w, lines, map[string]bool{"VHOST": several, "OLDEST": look})
}

// writeColumns leaves out the columns that are not wanted. The first line is their names.
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

// verdict is an error if something is wrong, which makes the exit code.
func verdict(summaries []summary) error {
	for _, s := range summaries {
		for _, q := range s.queues {
			if q.Note != "" && !q.unasked {
				return cli.FindingError{Err: fmt.Errorf("queue %q: %s", q.Queue, q.Note)}
			}
		}
	}
	return nil
}

// inbox is that of the pipeline or the delayed exchange, "" for a queue of neither.
func (p *target) inbox() string {
	switch {
	case p.Delayed != "":
		return p.Delayed.Inbox()
	case p.Pipeline != "":
		return p.Pipeline.Inbox()
	}
	return ""
}
