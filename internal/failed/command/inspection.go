package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// inspection shows an operation, and asks before it changes anything.
type inspection struct {
	// guarded is nil until guard has been called.
	guarded  *operation.Run
	options  *options
	target   *operation.Target
	terminal *terminal
	// blocked is the last reported reason why the broker accepts no messages. awaits is whether a wait for messages was last
	// reported.
	blocked string
	awaits  bool
}

// options are the options that several commands share.
type options struct {
	targetFlags
	filters
	record   string
	yes, all bool
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.targetFlags.addFlags(cmd)
	o.filters.addFlags(cmd)
	o.addForce(cmd)
}

// addRunFlags adds the flags of commands that change something. The text runs says which runs have a record.
func (o *options) addRunFlags(cmd *cobra.Command, runs string) {
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().StringVar(&o.record, "record", "", "`file` for the record of "+runs+" (default: stderr, unless it is a terminal)")
}

// addAll adds --all, without which a command needs a filter or a limit.
func (o *options) addAll(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.all, "all", false, "act on all messages; without --all, a filter or --limit must choose messages")
}

// chosen reads the filter. If the command has --all, the user must choose messages or write --all.
func (o *options) chosen(cmd *cobra.Command) (failed.Filter, error) {
	filter, err := o.filter(cmd.InOrStdin(), time.Now())
	if err != nil {
		return filter, err
	}
	chosen, mustChoose := filter.Selective() || o.Limit > 0, cmd.Flags().Lookup("all") != nil
	switch {
	case o.all && chosen:
		return filter, errors.New("--all: means all messages; remove it, or the filter and --limit")
	case mustChoose && !o.all && !chosen:
		return filter, errors.New("which messages? Write a filter, --limit, or --all")
	}
	return filter, nil
}

// read reads the queue and the filter.
func (o *options) read(cmd *cobra.Command, args []string) (*inspection, failed.Filter, error) {
	filter, err := o.chosen(cmd)
	if err != nil {
		return nil, filter, err
	}
	target, _, err := o.find(args, 0)
	return o.inspection(cmd, target), filter, err
}

func (o *options) addForce(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.Force, "force", false,
		"look although a quorum queue can delete messages after too many looks; its delivery limit must be -1 or high enough")
}

func (o *options) inspection(cmd *cobra.Command, target *operation.Target) *inspection {
	return &inspection{options: o, target: target, terminal: &terminal{in: cmd.InOrStdin(), err: cmd.ErrOrStderr(), yes: o.yes}}
}

// guard begins the run.
func (s *inspection) guard(ctx context.Context, looks bool) (err error) {
	if s.guarded, err = s.target.Guard(ctx, s.options.Options, looks); err != nil {
		return s.failed(err)
	}
	if s.guarded.Limited {
		s.terminal.say("Each look at quorum queue %q can count against its delivery limit; RabbitMQ 4 has one by default. "+
			"A policy with delivery-limit -1 removes the limit.", s.target.Name)
	}
	s.guarded.Progress = s.progress(seen)
	return nil
}

// look guards the queue, and passes the messages that the filter selects to visit.
func (s *inspection) look(ctx context.Context, filter failed.Filter, visit func(*failed.Entry) (enough bool)) (operation.Look, error) {
	if err := s.guard(ctx, true); err != nil {
		return operation.Look{}, err
	}
	look, err := s.guarded.Look(ctx, filter, visit)
	return look, s.failed(err)
}

// failed is an operation's error, with advice.
func (s *inspection) failed(err error) error {
	s.terminal.line("")
	return cli.Runtime(s.options.advise(s.target, err))
}

// progress shows a line of progress, and why the run waits.
func (s *inspection) progress(line func(transfer.Progress) string) func(transfer.Progress) {
	return func(p transfer.Progress) {
		s.sayWaiting(p)
		s.terminal.line(line(p) + waiting(p))
	}
}

// saving runs do with the file that keeps messages, nil if no file is named. If nothing was made durable, the file is
// removed.
func (s *inspection) saving(ctx context.Context, flag, name string, do func(context.Context, *operation.Sink) error) error {
	if name == "" {
		if err := canRecord(s.options.record); err != nil {
			return err
		}
		return do(ctx, nil)
	}
	to, err := newSink(flag, name)
	if err != nil {
		return err
	}
	defer to.CloseKept()
	if err := canRecord(s.options.record, to); err != nil {
		return err
	}
	return do(ctx, to)
}

// sayNone tells why nothing is done. It returns an error if other consumers can hold the messages.
func (s *inspection) sayNone(seen transfer.Result) error {
	switch {
	case seen.Seen == 0 && seen.Consumers > 0:
		return cli.RuntimeError{Err: fmt.Errorf("nothing was done: no message was seen in %q, and %s can hold some",
			s.target.Name, failed.Count(seen.Consumers, "other consumer"))}
	case seen.Seen == 0:
		s.terminal.say("%s is empty", s.target.Name)
	default:
		s.terminal.say("0 of %s in %s match", failed.Messages(seen.Seen), s.target.Name)
	}
	return nil
}

// recordBegin writes the record of the beginning. If it fails, the run must not change anything, since it could be killed
// without a record.
func (s *inspection) recordBegin(r operation.Record, meant int) error {
	return cli.Runtime(s.terminal.record(s.guarded.Begin(r, meant), s.options.record))
}

// recordEnd writes the record of the end. It returns the error of the run or of the record, or else unfinished.
func (s *inspection) recordEnd(r operation.Record, counts map[string]int, p transfer.Result, ended, unfinished error) error {
	recorded := s.terminal.record(s.guarded.End(r, counts, p, ended), s.options.record)
	return s.failed(cmp.Or(errors.Join(ended, recorded), unfinished))
}

// seen is the progress of a look.
func seen(p transfer.Progress) string { return fmt.Sprintf("%s %d/%d", p.Phase, p.Seen, p.Ready) }

// sayHidden tells which messages a look could not show.
func (s *inspection) sayHidden(r operation.Look) {
	for _, line := range hidden(r) {
		s.terminal.say("%s", line)
	}
}

// hidden says which messages a look could not show.
func hidden(r operation.Look) (lines []string) {
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
func (s *inspection) sayOversized(p transfer.Result) {
	const shown = 20
	for i, o := range p.Oversized {
		if i == shown {
			s.terminal.say("%s more are too large", failed.Messages(len(p.Oversized)-shown))
			return
		}
		s.terminal.say("%s skipped: its body of %d bytes is larger than the broker's max_message_size, %d", s.named(o), o.Size, o.Max)
	}
}

// named describes a message so that the user can find it.
func (s *inspection) named(o transfer.Oversized) string {
	switch {
	case o.Line > 0:
		return fmt.Sprintf("line %d", o.Line)
	case o.MessageID != "":
		return fmt.Sprintf("message %s (message-id %s, number %d in %s)", o.ID, pasted(o.MessageID), o.Position, s.target.Name)
	default:
		return fmt.Sprintf("message %s (number %d in %s)", o.ID, o.Position, s.target.Name)
	}
}

// back tells whether the messages that were read are back in the queue.
func back(l transfer.Result) string {
	if l.NotBack == 0 {
		return "all put back"
	}
	return fmt.Sprintf("%d of them not back: they expired, another consumer took them, or the queue deleted them "+
		"at its delivery limit", l.NotBack)
}

// complete is an error if messages are not back, or if ids or all runs of the filter have no message.
func (s *inspection) complete(look operation.Look, filter failed.Filter) error {
	if len(look.Absent) < len(filter.Runs) {
		look.Absent = nil // the messages of the other runs were listed
	}
	return errors.Join(s.notBack(look.Result), s.notFound(look))
}

// notFound is an error if ids or runs of the filter have no message.
func (s *inspection) notFound(l operation.Look) error { return s.failed(l.NotFound(s.target.Name)) }

// notBack is an error if messages that were read are not back, or if counted messages did not come.
func (s *inspection) notBack(l transfer.Result) error {
	switch {
	case l.NotBack > 0:
		return cli.RuntimeError{Err: fmt.Errorf("%s not back in %q", failed.Messages(l.NotBack), s.target.Name)}
	case l.Vanished > 0:
		return cli.RuntimeError{Err: fmt.Errorf("%s of %q did not come", failed.Messages(l.Vanished), s.target.Name)}
	}
	return nil
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
func (s *inspection) sayWaiting(p transfer.Progress) {
	awaits := p.Waiting && p.Missing > 0
	switch {
	case awaits && !s.awaits, p.Blocked != "" && s.blocked == "":
		s.terminal.say("%s", strings.TrimSpace(waiting(p)))
	case p.Blocked == "" && s.blocked != "":
		s.terminal.say("the broker accepts messages again")
	}
	s.blocked, s.awaits = p.Blocked, awaits
}

// sayVanished tells that counted messages did not come.
func (s *inspection) sayVanished(p transfer.Result) {
	if p.Vanished > 0 {
		s.terminal.say("%s", vanished(p.Vanished))
	}
}

func vanished(n int) string {
	return failed.Messages(n) + " did not come after all: they expired, another consumer took them, or the queue was purged."
}
