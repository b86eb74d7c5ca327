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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
)

type delayedListOptions struct {
	delayedOptions
	messages bool
	format   string
}

func newDelayedList(target targetFlags) *cobra.Command {
	o := &delayedListOptions{delayedOptions: newDelayedOptions(target)}
	cmd := &cobra.Command{
		Use:   "list EXCHANGE",
		Short: "Show what waits in a delayed exchange",
		Long: `Counts the messages that wait, by routing key and by the hour or day when they are due, or lists them by due time. It
says until which due time it is complete, and which messages it only counted. The due time is the one that the sidecar
wrote into the message.

"rabbitmq-retry delayed --help" says what a look does to the messages, and what it needs.`,
		Example: `  # What is due, and when?
  rabbitmq-retry delayed list events --endpoint http://localhost:15672

  # What is due within two hours, with ids for "delayed show".
  rabbitmq-retry delayed list events --config worker.json --due-before 2h --messages

  rabbitmq-retry delayed list events --endpoint http://localhost:15672 --routing-key 'order.*' --header tenant=a -o json`,
		Args: cli.Arguments(1, 1),
		RunE: o.run,
	}
	o.addLookFlags(cmd)
	o.addDueFlags(cmd)
	cmd.Flags().BoolVar(&o.messages, "messages", false, "list the messages instead of counting them")
	cmd.Flags().StringVarP(&o.format, "output", "o", cli.Table, "table, json, jsonl or id")
	complete(cmd, "output", formats...)
	return cmd
}

func (o *delayedListOptions) run(cmd *cobra.Command, args []string) error {
	if err := cli.CheckFormat(o.format, formats...); err != nil {
		return err
	}
	if err := o.find(cmd, args[0]); err != nil {
		return err
	}
	list := schedule{Exchange: args[0], Vhost: o.target.Vhost, Groups: []*dueGroup{}, Due: []dueCount{}, Rows: []row{}}
	look, err := o.waiting.Look(cmd.Context(), o.filter, func(e *failed.Entry) (enough bool) {
		list.Rows = append(list.Rows, newRow(e))
		return false
	})
	none := look.Seen == 0 && !errors.Is(err, transfer.ErrConsumed)
	if err = o.ended(cmd.Context(), err); err != nil && (none || cmd.Context().Err() != nil) {
		return err
	}
	list.Seen, list.Selected, list.Places = look.Seen, look.Selected, o.waiting.Places
	for _, p := range list.Places {
		list.Waiting += p.Messages
		if p.IsLong() && p.Unseen > 0 && (list.CompleteUntil.IsZero() || p.UnseenFrom.Before(list.CompleteUntil)) {
			list.CompleteUntil = p.UnseenFrom
		}
	}
	slices.SortFunc(list.Rows, func(a, b row) int { return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.ID, b.ID)) })
	if !o.messages && o.format != asID {
		list.count()
	}
	if err := writeList(cmd, o.format, list, list.Groups, list.Rows, list.table); err != nil {
		return err
	}
	o.summary(list, err == nil)
	return err
}

// summary tells which messages were seen.
func (o *delayedListOptions) summary(list schedule, ended bool) {
	text := fmt.Sprintf("%d of %s in %s seen", list.Seen, failed.Messages(list.Waiting), list.Exchange)
	if list.Selected < list.Seen {
		text += fmt.Sprintf(", %d of them selected", list.Selected)
	}
	switch until := list.CompleteUntil; {
	case !ended:
		o.terminal.say("%s. Not complete, since a look failed.", text)
	case until.IsZero():
		o.terminal.say("%s; all put back.", text)
	case until.After(time.Now()):
		o.terminal.say("%s; all put back. Complete for what is due until %s.", text, view.Time(until))
	default:
		o.terminal.say("%s; all put back. Not complete: others can be due at any time.", text)
	}
	o.sayPlaces()
}

// schedule is the result of a look at what waits.
type schedule struct {
	Exchange string `json:"exchange"`
	Vhost    string `json:"vhost"`
	// Waiting is how many messages wait, Seen how many of them were seen, and Selected how many of these the filter selects.
	Waiting  int `json:"waiting"`
	Seen     int `json:"seen"`
	Selected int `json:"selected"`
	// CompleteUntil is the due time until which all messages were seen, zero if all were seen. Places that are never looked at can
	// have more.
	CompleteUntil time.Time `json:"complete_until,omitzero"`
	// Places are the queues, and what was not seen there.
	Places []operation.Place `json:"queues"`
	// Groups, Due and Rows are arrays even if they are empty, since scripts that read JSON loop over them.
	Groups []*dueGroup `json:"groups"`
	Due    []dueCount  `json:"due"`
	Rows   []row       `json:"rows"`
}

// dueGroup counts messages with a routing key.
type dueGroup struct {
	RoutingKey string    `json:"routing_key"`
	Count      int       `json:"count"`
	First      time.Time `json:"first_due"`
	Last       time.Time `json:"last_due"`
}

// dueCount counts messages by the hour or day when they are due.
type dueCount struct {
	From  time.Time `json:"from"`
	Count int       `json:"count"`
}

// count counts the rows, which are sorted, and leaves them out. It counts by the day if they are due over more than two days.
func (s *schedule) count() {
	const day = 24 * time.Hour
	unit := time.Hour
	if n := len(s.Rows); n > 0 && s.Rows[n-1].Due.Sub(s.Rows[0].Due) > 2*day {
		unit = day
	}
	groups := map[string]*dueGroup{}
	for _, r := range s.Rows {
		g := groups[r.RoutingKey]
		if g == nil {
			g = &dueGroup{RoutingKey: r.RoutingKey, First: r.Due}
			groups[r.RoutingKey], s.Groups = g, append(s.Groups, g)
		}
		if by := cmp.Or(r.DueBy, r.Due); by.After(g.Last) {
			g.Last = by
		}
		g.Count++
		if from := r.Due.Truncate(unit); len(s.Due) == 0 || s.Due[len(s.Due)-1].From != from {
			s.Due = append(s.Due, dueCount{From: from})
		}
		s.Due[len(s.Due)-1].Count++
	}
	s.Rows = []row{}
}

// table shows the counts.
func (s *schedule) table(w io.Writer) error {
	keys, times := [][]string{{"COUNT", "ROUTING KEY", "FIRST DUE", "LAST DUE"}}, [][]string{{"\nCOUNT", "DUE FROM", ""}}
	const width = 40
	most := slices.MaxFunc(s.Due, func(a, b dueCount) int { return cmp.Compare(a.Count, b.Count) }).Count
	for _, g := range s.Groups {
		keys = append(keys, []string{fmt.Sprint(g.Count), clipped(g.RoutingKey, groupError), view.Time(g.First), view.Time(g.Last)})
	}
	for _, d := range s.Due {
		times = append(times, []string{fmt.Sprint(d.Count), view.Time(d.From), strings.Repeat("█", max(1, width*d.Count/most))})
	}
	return cmp.Or(writeColumns(w, keys, nil), writeColumns(w, times, nil))
}
