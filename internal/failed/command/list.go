package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
)

type listOptions struct {
	options
	groupBy  []string
	messages bool
	format   string
	page     pageFlags
}

func newList(target targetFlags) *cobra.Command {
	o := &listOptions{options: options{targetFlags: target}}
	cmd := &cobra.Command{
		Use:   "list [PIPELINE]",
		Short: "Show what is in a failed queue",
		Long: `Counts the failed messages by reason, work queue and error, or lists them. It puts all of them back. Errors that
differ only in numbers, hexadecimal digits, UUIDs or times count as one error: <n>, <hex>, <uuid> and <time> stand for
these. It cannot see messages that another consumer holds. "rabbitmq-retry status" counts all pipelines.

-o html writes a page for a browser: the groups, the first messages of each, and the commands that send them back. The
page has no scripts and makes no requests, but it has what the messages hold. --mask leaves out the values of headers and
of members of JSON bodies. It then also leaves out all bodies that are not JSON.

Needs: read on <pipeline>.failed. With --queue: read on the queue.`,
		Example: `  # What failed, and why?
  rabbitmq-retry failed list orders

  # Which messages are these? Their ids, for "failed replay --ids -".
  rabbitmq-retry failed list orders --reason exhausted --since 2h --messages
  rabbitmq-retry failed list orders --error "no such article" -o id

  # A page to attach to the incident, without the values of two headers or JSON members.
  rabbitmq-retry failed list orders -o html --file orders.html --mask email,card

  # The error queue of another system.
  rabbitmq-retry failed list --queue billing_error --messages -o json`,
		Args: cli.Arguments(0, 1),
		RunE: o.run,
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&o.groupBy, "group-by", failed.UsualColumns(), "`columns` to count by: "+strings.Join(failed.Columns(), ", "))
	flags.BoolVar(&o.messages, "messages", false, "list the messages instead of counting them")
	flags.StringVarP(&o.format, "output", "o", cli.Table, "table, json, jsonl, id or html")
	o.page.addFlags(cmd)
	complete(cmd, "output", append(formats, asHTML)...)
	complete(cmd, "group-by", failed.Columns()...)
	return cmd
}

func (o *listOptions) check() error {
	if err := cli.CheckFormat(o.format, append(formats, asHTML)...); err != nil {
		return err
	}
	if o.format == asHTML && (o.messages || o.Limit > 0) {
		return errors.New("-o html: does not go with --messages and --limit, since it shows the first messages of each group")
	}
	return o.page.check(o.format)
}

func (o *listOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	groups, err := failed.NewGroups(o.groupBy)
	if err != nil {
		return fmt.Errorf("--group-by %w", err)
	}
	if err := o.read(cmd, args); err != nil {
		return err
	}
	if o.format == asHTML {
		return o.writePage(cmd.Context(), groups)
	}
	messages := o.messages || o.format == asID
	list := listing{Queue: o.target.Name, Vhost: o.target.Vhost, Rows: []row{}}
	look, err := o.look(cmd.Context(), func(e *failed.Entry) (enough bool) {
		switch {
		case !messages:
			groups.Add(e)
		case o.Limit == 0 || len(list.Rows) < o.Limit:
			list.Rows = append(list.Rows, newRow(e))
		}
		return false
	})
	if err != nil && look.Seen == 0 {
		return err
	}
	list.Groups = append([]*failed.Group{}, groups.Sorted()...)
	list.Messages, list.Selected, list.Consumers = look.Seen, look.Selected, look.Consumers
	if printed := writeList(cmd, o.format, list, list.Groups, list.Rows, list.table); printed != nil {
		return printed
	}
	o.summary(look, len(list.Groups) > 0)
	return cmp.Or(err, o.complete(look))
}

// summary tells how many messages were seen and selected.
func (o *listOptions) summary(result operation.Look, grouped bool) {
	text := failed.Messages(result.Seen) + " in " + o.target.Name
	if result.Selected < result.Seen {
		text += fmt.Sprintf(", %d of them selected", result.Selected)
	}
	if result.Seen > 0 {
		text += "; " + back(result.Result)
	}
	text += "."
	if grouped {
		text += " --messages lists them with their ids."
	}
	o.terminal.say("%s", text)
	if result.Seen == o.guarded.Scan && result.Ready > result.Seen+result.Vanished {
		o.terminal.say("Only the first %d of %d were looked at: write --scan %d for all.", result.Seen, result.Ready, result.Ready)
	}
	o.sayHidden(result)
}

// Formats besides a table and JSON.
const (
	asJSONL = "jsonl"
	asID    = "id"
	asHTML  = "html"
)

// formats are the output formats of every list.
var formats = []string{cli.Table, cli.JSON, asJSONL, asID}

// listing is the result of a look at a queue.
type listing struct {
	Queue string `json:"queue"`
	Vhost string `json:"vhost"`
	// Messages is how many messages were read, and Selected how many of them the filter selects.
	Messages int `json:"messages"`
	Selected int `json:"selected"`
	// Consumers is how many other consumers the queue has. They can hold messages that were not seen.
	Consumers int `json:"other_consumers"`
	// Groups and Rows are arrays even if they are empty, since scripts that read JSON loop over them.
	Groups []*failed.Group `json:"groups"`
	Rows   []row           `json:"rows"`
}

// row describes a message.
type row struct {
	ID          string    `json:"id"`
	FailedAt    time.Time `json:"failed_at,omitzero"`
	Reason      string    `json:"reason"`
	Attempts    int64     `json:"attempts"`
	MaxAttempts int64     `json:"max_attempts,omitempty"`
	WorkQueue   string    `json:"work_queue"`
	Exchange    string    `json:"exchange"`
	RoutingKey  string    `json:"routing_key"`
	Due         time.Time `json:"due_at,omitzero"`
	DueBy       time.Time `json:"due_by,omitzero"`
	Level       string    `json:"level,omitempty"`
	MessageID   string    `json:"message_id,omitempty"`
	Error       string    `json:"error,omitempty"`
	System      string    `json:"system,omitempty"`
	Replays     int64     `json:"replays,omitempty"`
	BodyBytes   int       `json:"body_bytes"`
	// preview is the beginning of the body.
	preview string
}

// newRow copies only the facts that are shown, so that the message can be freed.
func newRow(e *failed.Entry) row {
	return row{
		ID: e.ID, FailedAt: e.FailedAt, Reason: strings.Clone(e.Reason), Attempts: e.Attempts, MaxAttempts: e.MaxAttempts,
		WorkQueue: strings.Clone(e.WorkQueue), Exchange: strings.Clone(e.FirstExchange), RoutingKey: strings.Clone(e.FirstRoutingKey),
		Due: e.Due, DueBy: e.DueBy, Level: e.Level, MessageID: strings.Clone(e.MessageID), Error: e.ErrorLine(),
		System: string(e.System), Replays: e.Replays, BodyBytes: len(e.Body), preview: preview(e),
	}
}

// writeList writes a list of groups or rows: one of the two is empty.
func writeList[G any](cmd *cobra.Command, format string, list any, groups []G, rows []row, table func(io.Writer) error) (err error) {
	w := output{Context: cmd.Context(), To: cmd.OutOrStdout()}
	switch {
	case format == cli.JSON:
		err = cli.WriteJSON(w, list, "  ")
	case format == asJSONL:
		err = cmp.Or(writeLines(w, groups), writeLines(w, rows))
	case format == asID:
		for i := 0; i < len(rows) && err == nil; i++ {
			_, err = fmt.Fprintln(w, rows[i].ID)
		}
	case len(rows) > 0:
		err = writeRows(w, rows)
	case len(groups) > 0:
		err = table(w)
	}
	return cli.Runtime(err)
}

func writeLines[T any](w io.Writer, values []T) (err error) {
	for i := 0; i < len(values) && err == nil; i++ {
		err = cli.WriteJSON(w, values[i], "")
	}
	return err
}

// table shows the groups.
func (l listing) table(w io.Writer) error {
	lines := [][]string{{"COUNT", "REASON", "QUEUE", "ERROR", "RUN", "OLDEST", "NEWEST"}}
	for _, g := range l.Groups {
		lines = append(lines, []string{
			fmt.Sprint(g.Count), cell(g.Reason), clipped(g.WorkQueue, groupQueue), clipped(g.Error, groupError), cell(g.Run),
			age(g.Oldest), age(g.Newest),
		})
	}
	byRun := slices.ContainsFunc(l.Groups, func(g *failed.Group) bool { return g.Run != "" })
	return writeColumns(w, lines, map[string]bool{"RUN": byRun})
}

func writeRows(w io.Writer, rows []row) error {
	lines := [][]string{{"ID", "DUE AT", "FAILED AT", "ATTEMPTS", "REASON", "QUEUE", "ROUTING KEY", "MESSAGE ID", "ERROR, OR BODY"}}
	for _, r := range rows {
		lines = append(lines, []string{
			cell(r.ID), view.Due(r.Due, r.DueBy), view.Time(r.FailedAt), view.Attempts(r.Attempts, r.MaxAttempts),
			clipped(r.Reason, rowReason), clipped(r.WorkQueue, rowOrigin), clipped(r.RoutingKey, rowOrigin), clipped(r.MessageID, rowMessageID),
			clipped(cmp.Or(r.Error, r.preview), rowError),
		})
	}
	// Messages of a delayed exchange did not fail in a queue, and some wait.
	inQueue := slices.ContainsFunc(rows, func(r row) bool { return r.WorkQueue != "" })
	wait := rows[0].Level != ""
	return writeColumns(w, lines, map[string]bool{
		"DUE AT": wait, "FAILED AT": !wait, "ATTEMPTS": !wait, "REASON": !wait, "QUEUE": inQueue, "ROUTING KEY": !inQueue,
	})
}

// Widths of columns, chosen so that a table fits a terminal with 120 columns.
const (
	groupQueue, groupError                       = 28, 46
	rowReason, rowOrigin, rowMessageID, rowError = 14, 16, 14, 20
)

// clipped is a cell with at most width characters.
func clipped(text string, width int) string {
	shown := []rune(cell(text))
	if len(shown) <= width {
		return string(shown)
	}
	return string(shown[:width-1]) + "…"
}

// preview is the beginning of the body, "" if the body is not text.
func preview(e *failed.Entry) string {
	const enough = 4 * rowError
	begin := strings.ToValidUTF8(string(e.Beginning(enough)), "")
	if failed.Printable(begin) != begin {
		return ""
	}
	return strings.Join(strings.Fields(begin), " ")
}

// cell quotes text with characters that are invisible or would move the cursor.
func cell(text string) string {
	text = cmp.Or(text, "-")
	if failed.Printable(text) != text || strings.ContainsAny(text, "\n\t") {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// age is how long ago a time was, rounded.
func age(at time.Time) string {
	d := time.Since(at)
	switch {
	case at.IsZero():
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}
