package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
)

// options are what several commands share: their flags, and the operation, which they show. They ask before they change
// anything.
type options struct {
	targetFlags
	filters
	record string
	all    bool
	// keep is the file that keeps messages before they are taken out, "" for no copy, and saved writes to it.
	keep  string
	saved *operation.Sink
	// dryRun only counts the messages to act on.
	dryRun bool

	// command is the command's name in records.
	command  string
	terminal terminal
	target   *operation.Target
	filter   failed.Filter
	// guarded is nil until guard has been called.
	guarded *operation.Run
	// blocked is the last reported reason why the broker accepts no messages. awaits is whether a wait for messages was last
	// reported.
	blocked string
	awaits  bool
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.targetFlags.addFlags(cmd)
	o.filters.addFlags(cmd)
	o.addForce(cmd)
}

// addRunFlags adds the flags of commands that change something.
func (o *options) addRunFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.terminal.yes, "yes", "y", false, "do not ask")
	cmd.Flags().StringVar(&o.record, "record", "", "`file` for the record of the run (default: stderr, unless it is a terminal)")
}

// addTakingFlags adds the flags of commands that take messages out of the queue. The texts say which messages a file keeps,
// and what is done with them. Without --all, these commands need a filter or a limit.
func (o *options) addTakingFlags(cmd *cobra.Command, kept, done string) {
	flags := cmd.Flags()
	flags.StringVar(&o.keep, "export", "", "`file` to keep the "+kept+" in, which must not exist")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only count the messages that would be "+done)
	flags.BoolVar(&o.all, "all", false, "act on all messages; without --all, a filter or --limit must choose messages")
	o.addRunFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("export", "dry-run")
}

// read reads the filter and the queue. If the command has --all, the user must choose messages or write --all.
func (o *options) read(cmd *cobra.Command, args []string) (err error) {
	if o.filter, err = o.parse(cmd.InOrStdin(), time.Now()); err != nil {
		return err
	}
	chosen, mustChoose := o.filter.Selective() || o.Limit > 0, cmd.Flags().Lookup("all") != nil
	switch {
	case o.all && chosen:
		return errors.New("--all: means all messages; remove it, or the filter and --limit")
	case mustChoose && !o.all && !chosen:
		return errors.New("which messages? Write --all, --limit, or a filter other than --not-..., which only leaves messages out")
	}
	if _, err = o.find(cmd, args, 0); err != nil || o.target.Entrance() == "" {
		return err
	}
	// A misspelt reason would leave nothing out. Consumers can have reasons of their own.
	for _, reason := range slices.Concat(o.filter.Reasons, o.filter.Not.Reasons) {
		if meant := similar.To(reason, slices.Values(reasons())); meant != "" {
			return fmt.Errorf("%q is no reason of pipelines and delayed exchanges: did you mean %q? They give: %s",
				reason, meant, strings.Join(reasons(), ", "))
		}
	}
	return nil
}

// find is [targetFlags.locate] for commands about failed messages. A delayed exchange has a failed queue only if a pipeline
// has the same name.
func (o *options) find(cmd *cobra.Command, args []string, others int) (rest []string, err error) {
	o.command, o.terminal.in, o.terminal.err = cmd.Name(), cmd.InOrStdin(), cmd.ErrOrStderr()
	o.target, rest, err = o.locate(args, others)
	if t := o.target; err == nil && t.Pipeline != "" && t.Worker == nil && t.Delaying != nil {
		err = fmt.Errorf("%q is a delayed exchange: write --queue %s", t.Pipeline, pasted(delayed.Names(t.Pipeline).UnroutedQueue()))
	}
	return rest, err
}

func (o *options) addForce(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.Force, "force", false,
		"look although a quorum queue can delete messages after too many looks; its delivery limit must be -1 or high enough")
}

// guard begins the run.
func (o *options) guard(ctx context.Context, looks bool) (err error) {
	if o.guarded, err = o.target.Guard(ctx, o.Options, looks); err != nil {
		return o.failed(err)
	}
	if o.guarded.Limited {
		o.terminal.say("Each look at quorum queue %q can count against its delivery limit; RabbitMQ 4 has one by default. "+
			"A policy with delivery-limit -1 removes the limit.", o.target.Name)
		if p := failed.PipelineOf(o.target.Name); p != "" && o.target.Pipeline == "" {
			o.terminal.say("If it is the failed queue of pipeline %q, looks do no harm: write the pipeline's name instead of --queue.", p)
		}
	}
	o.guarded.Progress, o.guarded.Saved = o.progress(seen), o.saved
	return nil
}

// look guards the queue, and passes the messages that the filter selects to visit.
func (o *options) look(ctx context.Context, visit func(*failed.Entry) (enough bool)) (operation.Look, error) {
	if err := o.guard(ctx, true); err != nil {
		return operation.Look{}, err
	}
	look, err := o.guarded.Look(ctx, o.filter, visit)
	return look, o.failed(err)
}

// failed is an operation's error, with advice.
func (o *options) failed(err error) error {
	o.terminal.line("")
	return cli.Runtime(o.advise(o.target, err))
}

// progress shows a line of progress, and why the run waits.
func (o *options) progress(line func(transfer.Progress) string) func(transfer.Progress) {
	return func(p transfer.Progress) {
		o.sayWaiting(p)
		o.terminal.line(line(p) + waiting(p))
	}
}

// saving runs do with the file of --export, if one is named. If nothing was made durable, the file is removed.
func (o *options) saving(ctx context.Context, do func(context.Context) error) (err error) {
	var messages *os.File
	if o.keep != "" {
		if messages, err = createFile("--export", o.keep); err != nil {
			return err
		}
		o.saved = operation.NewSink(messages, o.keep)
		defer o.saved.CloseKept()
	}
	if err := canRecord(o.record, messages); err != nil {
		return err
	}
	return do(ctx)
}

// sayNone tells why nothing is done. It returns an error if other consumers can hold the messages.
func (o *options) sayNone(seen transfer.Result) error {
	switch {
	case seen.Seen == 0 && seen.Uncounted:
		return cli.RuntimeError{Err: fmt.Errorf("nothing was done: no message of %q came. %w", o.target.Name, amqpconn.ErrNeedsConfigure)}
	case seen.Seen == 0 && seen.Consumers > 0:
		return cli.RuntimeError{Err: fmt.Errorf("nothing was done: no message was seen in %q, and %s can hold some; stop them, or try again",
			o.target.Name, failed.Count(seen.Consumers, "other consumer"))}
	case seen.Seen == 0:
		o.terminal.say("%s is empty", o.target.Name)
	default:
		o.terminal.say("0 of %s in %s match", failed.Messages(seen.Seen), o.target.Name)
	}
	return o.counted(seen)
}

// counted is an error if the broker told no counts.
func (o *options) counted(l transfer.Result) error {
	if !l.Uncounted {
		return nil
	}
	return cli.RuntimeError{Err: fmt.Errorf("it is not known whether %q had more messages, and has the read ones again", o.target.Name)}
}

// begin asks whether to begin, makes saved messages durable, and writes the record of the beginning. If it fails, the run
// must not change anything, since it could be killed without a record.
func (o *options) begin(ctx context.Context, question string, r operation.Record, meant int) error {
	if err := o.terminal.ask(ctx, question); err != nil {
		return err
	}
	if o.saved != nil {
		if err := o.saved.Keep(); err != nil {
			return cli.RuntimeError{Err: err}
		}
	}
	return cli.Runtime(o.terminal.record(o.guarded.Begin(r, meant), o.record))
}

// recordEnd writes the record of the end. It returns the error of the run or of the record, or else unfinished.
func (o *options) recordEnd(r operation.Record, counts map[string]int, p transfer.Result, ended, unfinished error) error {
	recorded := o.terminal.record(o.guarded.End(r, counts, p, ended), o.record)
	return o.failed(cmp.Or(errors.Join(ended, recorded), unfinished))
}

func seen(p transfer.Progress) string { return fmt.Sprintf("%s %d/%d", p.Phase, p.Seen, p.Ready) }

// sayHidden tells which messages a look could not show.
func (o *options) sayHidden(r operation.Look) {
	for _, line := range hidden(r) {
		o.terminal.say("%s", line)
	}
}

// hidden says which messages a look could not show.
func hidden(r operation.Look) (lines []string) {
	if r.Uncounted {
		lines = append(lines, fmt.Sprintf("As far as seen, since no message came for some seconds. The number is not known: %v.",
			amqpconn.ErrNeedsConfigure))
	}
	if r.Consumers > 0 {
		lines = append(lines, failed.Count(r.Consumers, "other consumer")+" can hold messages that cannot be seen.")
	}
	if r.Vanished > 0 {
		lines = append(lines, vanished(r.Vanished))
	}
	if n := r.Timeless; n > 0 {
		lines = append(lines, failed.Messages(n)+" without a time of failure: excluded by the bounds of time.")
	}
	if missing := r.Missing; len(missing) > 0 {
		const shown = 5
		lines = append(lines, fmt.Sprintf("%s not found: %s", failed.Count(len(missing), "id"),
			strings.Join(missing[:min(shown, len(missing))], ", ")))
	}
	return lines
}

// sayOversized names the messages that are too large for the broker.
func (o *options) sayOversized(p transfer.Result) {
	const shown = 20
	for _, large := range p.Oversized[:min(shown, len(p.Oversized))] {
		o.terminal.say("%s skipped: its body of %d bytes is larger than the broker's max_message_size, %d", o.named(large), large.Size, large.Max)
	}
	if more := len(p.Oversized) - shown; more > 0 {
		o.terminal.say("%s more are too large", failed.Messages(more))
	}
}

// named describes a message so that the user can find it.
func (o *options) named(m transfer.Oversized) string {
	switch {
	case m.Line > 0:
		return fmt.Sprintf("line %d", m.Line)
	case m.MessageID != "":
		return fmt.Sprintf("message %s (message-id %s, number %d in %s)", m.ID, pasted(m.MessageID), m.Position, o.target.Name)
	default:
		return fmt.Sprintf("message %s (number %d in %s)", m.ID, m.Position, o.target.Name)
	}
}

// back tells whether the messages that were read are back in the queue.
func back(l transfer.Result) string {
	switch {
	case l.Uncounted:
		return "put back, but it is not known whether the queue has them all"
	case l.NotBack == 0:
		return "all put back"
	}
	return fmt.Sprintf("%d of them not back: they expired, another consumer took them, or the queue deleted them "+
		"at its delivery limit", l.NotBack)
}

// complete is an error if messages are not back, or if ids or all runs of the filter have no message.
func (o *options) complete(look operation.Look) error {
	if len(look.Absent) < len(o.filter.Runs) {
		look.Absent = nil // the messages of the other runs were listed
	}
	return errors.Join(o.notBack(look.Result), o.notFound(look))
}

// notFound is an error if ids or runs of the filter have no message.
func (o *options) notFound(l operation.Look) error { return o.failed(l.NotFound(o.target.Name)) }

// notBack is an error if messages that were read are not back, or if counted messages did not come.
func (o *options) notBack(l transfer.Result) error {
	switch {
	case l.NotBack > 0:
		return cli.RuntimeError{Err: fmt.Errorf("%s not back in %q", failed.Messages(l.NotBack), o.target.Name)}
	case l.Vanished > 0:
		return cli.RuntimeError{Err: fmt.Errorf("%s of %q did not come", failed.Messages(l.Vanished), o.target.Name)}
	}
	return o.counted(l)
}

// waiting tells why the run waits, "" if it does not.
func waiting(p transfer.Progress) string {
	switch {
	case p.Blocked != "":
		return "  the broker accepts no messages (" + p.Blocked + "): waiting"
	case p.Waiting && p.Missing > 0:
		return fmt.Sprintf("  waiting for %s that were counted before", failed.Messages(p.Missing))
	case p.Waiting:
		return "  waiting for the broker"
	default:
		return ""
	}
}

// sayWaiting tells the reason for a wait, since without a terminal there is no line of progress.
func (o *options) sayWaiting(p transfer.Progress) {
	awaits := p.Waiting && p.Missing > 0
	switch {
	case awaits && !o.awaits, p.Blocked != "" && o.blocked == "":
		o.terminal.say("%s", strings.TrimSpace(waiting(p)))
	case p.Blocked == "" && o.blocked != "":
		o.terminal.say("the broker accepts messages again")
	}
	o.blocked, o.awaits = p.Blocked, awaits
}

// sayVanished tells that counted messages did not come.
func (o *options) sayVanished(p transfer.Result) {
	if p.Vanished > 0 {
		o.terminal.say("%s", vanished(p.Vanished))
	}
}

func vanished(n int) string {
	return failed.Messages(n) + " did not come after all: they expired, another consumer took them, or the queue was purged."
}
