package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

const statusExample = `  # Inbox and failed queue; with the worker's configuration the retry queues, too.
  export RABBITMQ_URI=amqp://operator:secret@rabbitmq:5672
  rabbitmq-retry status orders
  rabbitmq-retry status orders --config orders.json -o json

  # What waits in a delayed exchange, and when the last of it is due.
  rabbitmq-retry status events --config worker.json`

// queueStatus is a line of the status.
type queueStatus struct {
	Queue     string `json:"queue"`
	Ready     int    `json:"ready"`
	Consumers int    `json:"consumers"`
	// DueBy is when the last of the messages that wait in a level will have been delivered.
	DueBy time.Time `json:"due_by,omitzero"`
	// Note is what is wrong.
	Note string `json:"note,omitempty"`
}

// NewStatus is the command "status".
func NewStatus(getenv func(string) string, version string) *cobra.Command {
	t, format := newTarget(caller{getenv, version}), view.Table
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Count what is in the queues of a pipeline or a delayed exchange",
		Long: `Counts the ready messages and the consumers of a pipeline's inbox, retry queues and failed queues. The names of
the retry queues, and of failed queues of single work queues, come from the worker's configuration; with it, what
queues have refused is counted, too. Exit code 1 says that a queue is missing, or that nothing consumes the inbox. A
pipeline of an engine without a worker has no inbox. What a quorum queue itself delays (engine native) is not ready,
and not counted.

Of a delayed exchange it counts the inbox, the levels of the configuration, what queues have refused and the unrouted
queue. DUE BY is when the last message of a level is delivered. What a level, or a queue of what was refused, cannot
deliver is not ready, and not counted. Where both a pipeline and a delayed exchange have the name, both are counted.

Needs: read on each of these queues. RabbitMQ before 4.3 needs no permission for it.`,
		Example: statusExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := view.CheckFormat(format, view.Table, view.JSON); err != nil {
				return err
			}
			place, _, err := t.locate(args, 0)
			if err != nil {
				return err
			}
			statuses, err := place.statuses(cmd.Context())
			if err != nil {
				return cli.RuntimeError{Err: err}
			}
			if err := writeStatuses(cmd.OutOrStdout(), statuses, format); err != nil {
				return cli.RuntimeError{Err: err}
			}
			return verdict(statuses)
		},
	}
	t.addFlags(cmd)
	cmd.Flags().StringVarP(&format, "output", "o", view.Table, "table or json")
	complete(cmd, "output", view.Table, view.JSON)
	return cmd
}

// inbox is that of the pipeline or the delayed exchange, "" for a queue of neither.
func (p *place) inbox() string {
	switch {
	case p.Delayed != "":
		return p.Delayed.Inbox()
	case p.Pipeline != "":
		return p.Pipeline.Inbox()
	}
	return ""
}

// hasNoWorker reports whether the pipeline is of an engine without a worker: its return exchange is there, and the one
// that a worker's inbox is bound to is not. Anybody may ask for an exchange.
func (p *place) hasNoWorker(ctx context.Context) bool {
	if p.Worker != nil {
		return false
	}
	returns, err := p.HasExchange(ctx, p.Pipeline.ReturnExchange())
	if err != nil || !returns {
		return false
	}
	leads, err := p.HasExchange(ctx, p.Pipeline.DeadLetterExchange())
	return err == nil && !leads
}

// watched is a queue that is counted.
type watched struct {
	name string
	// inbox says that somebody should consume it.
	inbox bool
	// longest is how long a message that comes now is under way at most, 0 if it does not wait.
	longest time.Duration
}

// watched are the queues of the pipeline, of the delayed exchange of that name, or the one that was named.
func (p *place) watched(ctx context.Context) []watched {
	if p.Pipeline == "" {
		return []watched{{name: p.Name}}
	}
	ofPipeline, ofDelayed := p.pipelineQueues(), p.delayedQueues()
	switch {
	case p.Delaying != nil && p.Worker == nil:
		return ofDelayed
	case p.Delaying != nil:
		return append(ofPipeline, ofDelayed...)
	case p.Worker != nil || !p.exists(ctx, delayed.Names(p.Pipeline).UnroutedExchange()):
		return ofPipeline
	case !p.exists(ctx, p.Pipeline.ReturnExchange()):
		return ofDelayed
	}
	return append(ofPipeline, ofDelayed...)
}

// exists reports whether there is certainly such an exchange.
func (p *place) exists(ctx context.Context, exchange string) bool {
	is, err := p.HasExchange(ctx, exchange)
	return err == nil && is
}

// pipelineQueues are the queues of the pipeline as far as they are known.
func (p *place) pipelineQueues() []watched {
	names, failed := []string{}, []string{p.Pipeline.FailedQueue()}
	if p.Worker != nil {
		for _, spelled := range p.Worker.Delays {
			// A delay of 0s has no queue.
			if delay, err := pipeline.ParseDelay(spelled); err == nil && delay > 0 && !slices.Contains(names, p.Pipeline.RetryQueue(delay)) {
				names = append(names, p.Pipeline.RetryQueue(delay))
			}
		}
		names = append(names, p.Pipeline.RefusedQueue())
		failed = append(failed, p.Worker.FailedQueues()...)
	}
	if !slices.Contains(failed, p.Name) {
		failed = append(failed, p.Name)
	}
	queues := []watched{{name: p.Pipeline.Inbox(), inbox: true}}
	for _, name := range append(names, failed...) {
		queues = append(queues, watched{name: name})
	}
	return queues
}

// delayedQueues are the queues of the delayed exchange as far as they are known.
func (p *place) delayedQueues() []watched {
	n := delayed.Names(p.Pipeline)
	queues := []watched{{name: n.Inbox(), inbox: true}}
	if p.Delaying != nil {
		for _, l := range p.Delaying.Levels() {
			queues = append(queues, watched{name: n.Level(l), longest: l.Longest()})
		}
		queues = append(queues, watched{name: n.Refused()})
	}
	return append(queues, watched{name: n.UnroutedQueue()})
}

func (p *place) statuses(ctx context.Context) ([]queueStatus, error) {
	const atMost = time.Minute
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	var statuses []queueStatus
	for _, w := range p.watched(ctx) {
		count, err := pass.Queue{Name: w.name, Open: p.Open}.Count(ctx)
		s := queueStatus{Queue: w.name, Ready: count.Ready, Consumers: count.Consumers}
		switch {
		case err != nil && w.name == p.Pipeline.Inbox() && p.hasNoWorker(ctx): // a user may not be allowed to hear that it is missing
			continue
		case errors.Is(err, pass.ErrNoQueue):
			s.Note = "does not exist"
		case err != nil:
			return nil, err
		case w.inbox && count.Consumers == 0:
			s.Note = "no consumer: is a worker running?"
		case w.longest > 0 && count.Ready > 0:
			s.DueBy = time.Now().Add(w.longest + time.Second).UTC().Truncate(time.Second)
		}
		statuses = append(statuses, s)
	}
	return statuses, nil
}

func writeStatuses(w io.Writer, statuses []queueStatus, format string) error {
	if format == view.JSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(statuses)
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	waiting := slices.ContainsFunc(statuses, func(s queueStatus) bool { return !s.DueBy.IsZero() })
	row := func(queue, ready, consumers, dueBy, note string) {
		if waiting {
			note = dueBy + "\t" + note
		}
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", queue, ready, consumers, note)
	}
	row("QUEUE", "READY", "CONSUMERS", "DUE BY", "NOTE")
	for _, s := range statuses {
		row(failed.Printable(s.Queue), fmt.Sprint(s.Ready), fmt.Sprint(s.Consumers), view.Moment(s.DueBy), cmp.Or(s.Note, "-"))
	}
	return columns.Flush()
}

// verdict is an error if something is wrong, which makes the exit code.
func verdict(statuses []queueStatus) error {
	for _, s := range statuses {
		if s.Note != "" {
			return cli.RuntimeError{Err: fmt.Errorf("queue %q: %s", s.Queue, s.Note)}
		}
	}
	return nil
}
