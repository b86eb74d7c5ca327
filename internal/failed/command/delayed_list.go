package command

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
)

type delayedListOptions struct {
	delayedOptions
	filter        failed.Filter
	headers       []string
	after, before string
	due           failed.Due
	messages      bool
}

func newDelayedList(getenv func(string) string) *cobra.Command {
	o := &delayedListOptions{delayedOptions: delayedOptions{targetFlags: newTarget(getenv)}}
	cmd := &cobra.Command{
		Use:   "list EXCHANGE",
		Short: "Show what waits in a delayed exchange",
		Long: `Counts the messages that wait, by routing key and by the hour or day when they are due, or lists them by due time. It
says until which due time it is complete, and which messages it only counted. The due time is the one that the sidecar
wrote into the message. Messages from releases before that show a range.

"rabbitmq-retry delayed --help" says what a look does to the messages, and what it needs.`,
		Example: `  # What is due, and when?
  rabbitmq-retry delayed list events --endpoint http://localhost:15672

  # What is due within two hours, with ids for "delayed show".
  rabbitmq-retry delayed list events --config worker.json --due-before 2h --messages

  rabbitmq-retry delayed list events --endpoint http://localhost:15672 --routing-key 'order.*' --header tenant=a -o json`,
		Args: cli.Arguments(1, 1),
		RunE: o.run,
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.after, "due-after", "", "only messages due after this `time`: RFC 3339, or a duration from now such as 2h")
	flags.StringVar(&o.before, "due-before", "", "only messages due before this `time`: RFC 3339, or a duration from now")
	flags.StringArrayVar(&o.headers, "header", nil, "only messages with this header, `name=value`; can be repeated")
	flags.StringVar(&o.filter.RoutingKey, "routing-key", "", "only messages whose routing key matches this `pattern`; * stands for any text")
	flags.StringArrayVar(&o.filter.MessageIDs, "message-id", nil, "only messages with this message-`id`; can be repeated")
	flags.BoolVar(&o.messages, "messages", false, "list the messages")
	flags.StringVarP(&o.format, "output", "o", cli.Table, "table, json or jsonl")
	complete(cmd, "output", cli.Table, cli.JSON, asJSONL)
	return cmd
}

func (o *delayedListOptions) parse(now time.Time) (err error) {
	if err := cli.CheckFormat(o.format, cli.Table, cli.JSON, asJSONL); err != nil {
		return err
	}
	if o.due.After, err = fromNow.moment("--due-after", o.after, now); err != nil {
		return err
	}
	if o.due.Before, err = fromNow.moment("--due-before", o.before, now); err != nil {
		return err
	}
	if !o.due.Before.IsZero() && o.due.After.After(o.due.Before) {
		return fmt.Errorf("--due-after %s: must be earlier than --due-before %s", o.after, o.before)
	}
	o.filter.Headers, err = headerValues("--header", o.headers)
	return err
}

func (o *delayedListOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.parse(time.Now()); err != nil {
		return err
	}
	if err := o.find(cmd, args[0]); err != nil {
		return err
	}
	list, selector := schedule{Exchange: args[0], Vhost: o.waiting.Vhost, groups: map[string]*dueGroup{}}, o.filter.Selector()
	looked := o.look(cmd.Context(), func(m *failed.Waiting) (enough bool) {
		list.Seen++
		if selector.Selects(&m.Entry) && o.due.Has(m) {
			list.add(m, o.messages)
		}
		return false
	})
	if looked != nil && (list.Seen == 0 || cmd.Context().Err() != nil) {
		return looked
	}
	list.Places, list.CompleteUntil = o.waiting.Places, o.waiting.CompleteUntil()
	for _, p := range list.Places {
		list.Waiting += p.Messages
	}
	list.sort()
	if err := list.write(output{Context: cmd.Context(), To: cmd.OutOrStdout()}, o.format); err != nil {
		return cli.RuntimeError{Err: err}
	}
	text := fmt.Sprintf("%d of %s in %s seen", list.Seen, failed.Messages(list.Waiting), o.waiting.Delayed)
	if list.Selected < list.Seen {
		text += fmt.Sprintf(", %d of them selected", list.Selected)
	}
	text += "; all put back."
	switch until := list.CompleteUntil; {
	case until.IsZero():
	case until.After(time.Now()):
		text += " Complete for what is due until " + view.Time(until) + "."
	default:
		text += " Not complete: others can be due at any time."
	}
	o.terminal.say("%s", text)
	o.sayPlaces()
	return looked
}

// schedule is the result of a look at what waits.
type schedule struct {
	Exchange string `json:"exchange"`
	Vhost    string `json:"vhost"`
	// Waiting is how many messages wait, Seen how many of them were seen, and Selected how many of these the filter selects.
	Waiting  int `json:"waiting"`
	Seen     int `json:"seen"`
	Selected int `json:"selected"`
	// CompleteUntil is the due time until which all messages were seen, zero if all were seen. Places that are only counted can
	// have more.
	CompleteUntil time.Time `json:"complete_until,omitzero"`
	// Places are the queues, and what was not seen there.
	Places []operation.Place `json:"queues"`
	// Groups, Due and Rows are arrays even if they are empty, since scripts that read JSON loop over them.
	Groups []*dueGroup `json:"groups"`
	// Due counts the messages by the hour or day when they are due.
	Due  []dueCount `json:"due"`
	Rows []dueRow   `json:"rows"`

	groups map[string]*dueGroup
	times  []time.Time
}

// dueGroup counts messages with a routing key.
type dueGroup struct {
	RoutingKey string    `json:"routing_key"`
	Count      int       `json:"count"`
	First      time.Time `json:"first_due"`
	Last       time.Time `json:"last_due"`
}

type dueCount struct {
	From  time.Time `json:"from"`
	Count int       `json:"count"`
}

// dueRow describes a message that is due between two times, which are equal if the time is known.
type dueRow struct {
	ID         string    `json:"id"`
	From       time.Time `json:"due_from"`
	By         time.Time `json:"due_by"`
	Queue      string    `json:"queue"`
	RoutingKey string    `json:"routing_key"`
	MessageID  string    `json:"message_id,omitempty"`
	BodyBytes  int       `json:"body_bytes"`
	// preview is the beginning of the body.
	preview string
}

func newDueRow(m *failed.Waiting) dueRow {
	return dueRow{
		ID: m.ID, From: m.From.UTC(), By: m.By.UTC(), Queue: m.Queue, RoutingKey: strings.Clone(m.RoutingKey),
		MessageID: strings.Clone(m.MessageID), BodyBytes: len(m.Body), preview: preview(&m.Entry),
	}
}

// add counts a message. With asRow, it is also listed.
func (s *schedule) add(m *failed.Waiting, asRow bool) {
	s.Selected++
	if asRow {
		s.Rows = append(s.Rows, newDueRow(m))
	}
	group, from := s.groups[m.RoutingKey], m.From.UTC()
	if group == nil {
		group = &dueGroup{RoutingKey: strings.Clone(m.RoutingKey), First: from, Last: from}
		s.groups[group.RoutingKey] = group
	}
	group.Count++
	if from.Before(group.First) {
		group.First = from
	}
	if by := m.By.UTC(); by.After(group.Last) {
		group.Last = by
	}
	s.times = append(s.times, from)
}

// sort sorts by due time, and counts by the hour, or by the day if the messages are due over more than two days.
func (s *schedule) sort() {
	s.Groups = slices.SortedFunc(maps.Values(s.groups), func(a, b *dueGroup) int {
		return cmp.Or(a.First.Compare(b.First), strings.Compare(a.RoutingKey, b.RoutingKey))
	})
	slices.SortFunc(s.Rows, func(a, b dueRow) int { return cmp.Or(a.From.Compare(b.From), strings.Compare(a.ID, b.ID)) })
	slices.SortFunc(s.times, time.Time.Compare)
	const day = 24 * time.Hour
	unit := time.Hour
	if n := len(s.times); n > 0 && s.times[n-1].Sub(s.times[0]) > 2*day {
		unit = day
	}
	for _, at := range s.times {
		if from := at.Truncate(unit); len(s.Due) == 0 || s.Due[len(s.Due)-1].From != from {
			s.Due = append(s.Due, dueCount{From: from})
		}
		s.Due[len(s.Due)-1].Count++
	}
}

func (s *schedule) write(w io.Writer, format string) error {
	switch format {
	case cli.JSON:
		s.Groups, s.Due, s.Rows = append([]*dueGroup{}, s.Groups...), append([]dueCount{}, s.Due...), append([]dueRow{}, s.Rows...)
		return cli.WriteJSON(w, s, "  ")
	case asJSONL:
		if len(s.Rows) > 0 {
			return writeLines(w, s.Rows)
		}
		return writeLines(w, s.Groups)
	}
	if len(s.Rows) > 0 {
		lines := [][]string{{"ID", "DUE", "ROUTING KEY", "MESSAGE ID", "BODY"}}
		for _, r := range s.Rows {
			lines = append(lines, []string{
				cell(r.ID), dueRange(r.From, r.By), clipped(r.RoutingKey, groupQueue), clipped(r.MessageID, groupQueue), clipped(r.preview, rowError),
			})
		}
		return writeColumns(w, lines, nil)
	}
	if len(s.Groups) == 0 {
		return nil
	}
	lines := [][]string{{"COUNT", "ROUTING KEY", "FIRST DUE", "LAST DUE"}}
	for _, g := range s.Groups {
		lines = append(lines, []string{fmt.Sprint(g.Count), clipped(g.RoutingKey, groupError), dueTime(g.First), dueTime(g.Last)})
	}
	return cmp.Or(writeColumns(w, lines, nil), s.bars(w))
}

// bars shows how many messages are due in each hour or day.
func (s *schedule) bars(w io.Writer) error {
	const width, most = 40, 31
	largest := slices.MaxFunc(s.Due, func(a, b dueCount) int { return cmp.Compare(a.Count, b.Count) }).Count
	lines := [][]string{{"\nDUE FROM", "COUNT", ""}}
	for _, d := range s.Due[:min(most, len(s.Due))] {
		lines = append(lines, []string{dueTime(d.From), fmt.Sprint(d.Count), strings.Repeat("█", max(1, width*d.Count/largest))})
	}
	if more := len(s.Due) - most; more > 0 {
		lines = append(lines, []string{fmt.Sprintf("%d more: -o json has all", more), "", ""})
	}
	return writeColumns(w, lines, nil)
}

// dueRange is when a message is due.
func dueRange(from, by time.Time) string {
	if from.Equal(by) {
		return dueTime(from)
	}
	return dueTime(from) + " to " + dueTime(by)
}
