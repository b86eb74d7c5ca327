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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// foreignScan is how many messages of a queue of others are looked at, unless the command says how many.
const foreignScan = 100

// inspection looks at a queue before anything is done with it.
type inspection struct {
	options  *options
	target   *target
	terminal *terminal
	selector *failed.Selector
	// limited says that the queue may delete what is looked at too often.
	limited bool
	// last is what the last look has found.
	last transfer.Result
	// blocked is why the broker accepts no messages, and awaits whether messages are awaited, as it was said last.
	blocked string
	awaits  bool
}

// options are those that several commands have.
type options struct {
	targetFlags
	filters
	record          string
	yes, force, all bool
}

func newOptions(caller caller) options { return options{targetFlags: newTarget(caller)} }

func (o *options) addFlags(cmd *cobra.Command) {
	o.targetFlags.addFlags(cmd)
	o.filters.addFlags(cmd)
}

// addRunFlags are for commands that change something in the runs that are named.
func (o *options) addRunFlags(cmd *cobra.Command, runs string) {
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().StringVar(&o.record, "record", "", "`file` for the record of "+runs+" (default: stderr, unless that is a terminal)")
}

// addAll is for commands that act on the messages that are chosen, and on all of them only if that is said.
func (o *options) addAll(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.all, "all", false, "all messages: without it, a filter or --limit has to say which")
}

// mustChoose is an error unless the command says which messages it is about.
func (o *options) mustChoose(filter failed.Filter) error {
	chosen := filter.Selective() || o.limit > 0
	switch {
	case o.all && chosen:
		return errors.New("--all: means all messages, and there is a filter or --limit")
	case !o.all && !chosen:
		return errors.New("which messages? Write a filter, --limit, or --all")
	}
	return nil
}

func (o *options) addForce(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.force, "force", false,
		"look although a quorum queue deletes what is looked at too often: its delivery limit is -1, or high enough")
}

func (o *options) inspection(cmd *cobra.Command, target *target) *inspection {
	return &inspection{options: o, target: target, terminal: &terminal{in: cmd.InOrStdin(), err: cmd.ErrOrStderr(), yes: o.yes}}
}

// look hands over the messages that the filter selects. All are put back.
func (s *inspection) look(ctx context.Context, filter failed.Filter, visit func(*failed.Entry)) (transfer.Result, error) {
	s.selector = filter.Selector()
	if err := s.prepare(ctx); err != nil {
		return transfer.Result{}, cli.RuntimeError{Err: s.target.advise(err)}
	}
	var refused error
	job := transfer.Job{Scan: s.scan(), OneFirst: s.limited, Decide: func(e *failed.Entry) transfer.Verdict {
		if s.limited && e.DeliveryCount >= mostLooks {
			refused = s.lookedAtTooOften(e)
			return transfer.Verdict{Last: true}
		}
		if s.selector.Selects(e) {
			visit(e)
		}
		return transfer.Verdict{}
	}}
	result, err := s.goOver(ctx, job, seen)
	s.last = result
	if refused != nil {
		return transfer.Result{}, cli.RuntimeError{Err: errors.Join(refused, err)}
	}
	if err == nil && result.Interrupted {
		err = fmt.Errorf("stopped after %s; all put back", failed.Messages(result.Seen))
	}
	return result, cli.Runtime(s.target.advise(err))
}

// goOver runs a job, and shows how far it is.
func (s *inspection) goOver(ctx context.Context, job transfer.Job, line func(transfer.Progress) string) (transfer.Result, error) {
	job.Progress = s.progress(line)
	defer s.terminal.line("")
	return transfer.Run(ctx, s.target.Queue, job)
}

// saving has the file in which messages are kept, nil if none is named, while something is done. It goes if nothing was begun.
func (s *inspection) saving(flag, name string, do func(*sink) error) error {
	if name == "" {
		if err := canRecord(s.options.record); err != nil {
			return err
		}
		return do(nil)
	}
	if err := cli.MustBeFile(flag, name); err != nil {
		return err
	}
	to, err := newSink(flag, name)
	if err != nil {
		return err
	}
	defer to.closeKept()
	if err := canRecord(s.options.record, to.file); err != nil {
		return err
	}
	return do(to)
}

// notFound is an error if messages that were named are not there.
func (s *inspection) notFound() error {
	missing := s.selector.Missing()
	if len(missing) == 0 {
		return nil
	}
	return cli.RuntimeError{Err: fmt.Errorf("%s not found in %q", failed.Count(len(missing), "id"), s.target.Name)}
}

// sayNone says why nothing is done. It is an error if others may have what was meant.
func (s *inspection) sayNone(seen transfer.Result) error {
	switch {
	case seen.Seen == 0 && seen.Consumers > 0:
		return cli.RuntimeError{Err: fmt.Errorf("nothing was done: no message was seen in %q, and %s may hold some",
			s.target.Name, failed.Count(seen.Consumers, "other consumer"))}
	case seen.Seen == 0:
		s.terminal.say("%s is empty", s.target.Name)
	default:
		s.terminal.say("no message matches, of %d in %s", seen.Seen, s.target.Name)
	}
	return nil
}

// recordBegin leaves the record of a run that may be killed. Nothing may be done without.
func (s *inspection) recordBegin(r Record, meant int) error {
	r.Event, r.Counts = Begin, map[string]int{"meant": meant}
	return cli.Runtime(s.record(r))
}

// recordEnd leaves the record of a run that ended like this. Without another error, the last one says that not all is done.
func (s *inspection) recordEnd(r Record, p transfer.Result, ended, unfinished error) error {
	r.Event = End
	if ended != nil {
		r.Error = ended.Error()
	}
	if p.Unverified { // no number of what nobody knows, but the most that it can be
		delete(r.Counts, "duplicated")
		r.Counts["duplicated_at_most"] = p.MostDoubled()
	}
	err := cmp.Or(errors.Join(ended, s.record(r)), unfinished)
	return cli.Runtime(s.target.advise(err))
}

func (s *inspection) record(r Record) error {
	r.At, r.User, r.Vhost, r.Queue = time.Now().UTC(), s.target.serving.Username(), s.target.Vhost, s.target.Name
	return s.terminal.record(r, s.options.record)
}

// scan is how many messages are looked at.
func (s *inspection) scan() int {
	if s.options.scan == 0 && s.target.Pipeline == "" && s.target.Delayed == "" {
		return foreignScan
	}
	return s.options.scan
}

// progress shows a line, and why it does not go on.
func (s *inspection) progress(line func(transfer.Progress) string) func(transfer.Progress) {
	return func(p transfer.Progress) {
		s.sayWaiting(p)
		s.terminal.line(line(p) + waiting(p))
	}
}

// seen is how far a look is.
func seen(p transfer.Progress) string { return fmt.Sprintf("%s %d/%d", p.Phase, p.Seen, p.Ready) }

// sayHidden says what a look cannot show.
func (s *inspection) sayHidden(r transfer.Result) {
	if r.Consumers > 0 {
		s.terminal.say("%s may hold messages that cannot be seen.", failed.Count(r.Consumers, "other consumer"))
	}
	s.sayVanished(r)
	if n := s.selector.Timeless; n > 0 {
		s.terminal.say("%s without a time of failure: not within any time.", failed.Messages(n))
	}
	if missing := s.selector.Missing(); len(missing) > 0 {
		const shown = 5
		s.terminal.say("%s not found: %s", failed.Count(len(missing), "id"), strings.Join(missing[:min(shown, len(missing))], ", "))
	}
}

// AMQP tells nobody but who may configure a queue whether it has a delivery limit, and nobody at all what a policy says.
// A message that is put back more often than the limit allows is deleted, or dead-lettered.
const (
	// mostLooks is how often a message was put back when it is looked at no more.
	mostLooks = 3
	// usualLimit is that of a quorum queue of RabbitMQ 4 that has no other one.
	usualLimit = 20
)

// prepare finds out whether the queue of others may delete what is looked at.
func (s *inspection) prepare(ctx context.Context) error {
	if err := s.target.recognize(ctx); err != nil {
		return err
	}
	if s.target.isKept() || s.limited || s.options.force && s.target.isOfWorkQueues() {
		return nil // by force: the user says that the pipeline declares it
	}
	kind, err := s.target.Kind(ctx)
	switch {
	case err != nil:
		return err
	case kind == transfer.Stream:
		return fmt.Errorf("queue %q is a stream, which keeps its messages whoever reads them: there is nothing to replay or to take out",
			s.target.Name)
	case kind == transfer.Quorum && !s.options.force:
		s.limited = true
		s.terminal.say("Each look at quorum queue %q may count against its delivery limit; RabbitMQ 4 has one by default. "+
			"A policy with delivery-limit -1 ends that.", s.target.Name)
	}
	return nil
}

// lookedAtTooOften is an error about a message that was put back too often. If it is the first one, no other was delivered.
func (s *inspection) lookedAtTooOften(e *failed.Entry) error {
	alone := ""
	if s.target.isOfWorkQueues() {
		alone = fmt.Sprintf("; --force alone is enough if pipeline %q declares the queue, as its configuration (--config) would tell",
			s.target.Pipeline)
	}
	return fmt.Errorf("a message of %q was put back %d times already, and a delivery limit, which AMQP does not tell, deletes what "+
		"is put back too often: one of %d, the default of RabbitMQ 4, leaves %d looks. Set delivery-limit to -1 in a policy (RabbitMQ 4), "+
		"and write --force%s", s.target.Name, e.DeliveryCount, usualLimit, max(0, usualLimit-e.DeliveryCount-1), alone)
}

// sayOversized names the messages that the broker does not take.
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

// named is how a message is found.
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

// back says where the messages are that were looked at.
func (s *inspection) back() string {
	if s.last.NotBack == 0 {
		return "all put back"
	}
	return fmt.Sprintf("%d of them not back: they expired, somebody took them, or the queue has a delivery limit and "+
		"deletes what is looked at too often", s.last.NotBack)
}

// notBack is an error if messages that were looked at are not back, or some were counted that did not come.
func (s *inspection) notBack() error {
	switch {
	case s.last.NotBack > 0:
		return cli.RuntimeError{Err: fmt.Errorf("%s not back in %q", failed.Messages(s.last.NotBack), s.target.Name)}
	case s.last.Vanished > 0:
		return cli.RuntimeError{Err: fmt.Errorf("%s of %q did not come", failed.Messages(s.last.Vanished), s.target.Name)}
	}
	return nil
}

// waiting is why it does not go on.
func waiting(p transfer.Progress) string {
	switch {
	case p.Blocked != "":
		return "  the broker accepts no messages (" + p.Blocked + "): waiting"
	case p.Waiting && p.Missing > 0:
		return fmt.Sprintf("  waiting for %s counted before", failed.Messages(p.Missing))
	case p.Waiting:
		return "  waiting for the broker"
	default:
		return ""
	}
}

// sayWaiting says what is waited for: without a terminal there is no line of progress that would say why nothing happens.
func (s *inspection) sayWaiting(p transfer.Progress) {
	awaits := p.Waiting && p.Missing > 0
	if awaits && !s.awaits {
		s.terminal.say("%s", strings.TrimSpace(waiting(p)))
	}
	switch {
	case p.Blocked != "" && s.blocked == "":
		s.terminal.say("the broker accepts no messages (%s): waiting", p.Blocked)
	case p.Blocked == "" && s.blocked != "":
		s.terminal.say("the broker accepts messages again")
	}
	s.blocked, s.awaits = p.Blocked, awaits
}

// sayVanished says that messages were counted and did not come.
func (s *inspection) sayVanished(p transfer.Result) {
	if p.Vanished > 0 {
		s.terminal.say("%s did not come after all: somebody took them or purged the queue, or they expired.", failed.Messages(p.Vanished))
	}
}
