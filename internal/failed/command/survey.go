package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

// foreignScan is how many messages of a queue of others are looked at, unless the command says how many.
const foreignScan = 100

// survey looks at a queue before anything is done with it.
type survey struct {
	options  *options
	place    *place
	terminal *terminal
	selector *failed.Selector
	// limited says that the queue may delete what is looked at too often.
	limited bool
	// last is what the last look has found.
	last pass.Result
	// blocked is why the broker accepts no messages, and awaits whether messages are awaited, as it was said last.
	blocked string
	awaits  bool
}

// options are those that several commands have.
type options struct {
	target
	filters
	auditLog   string
	yes, force bool
}

func newOptions(caller caller) options { return options{target: newTarget(caller)} }

func (o *options) addFlags(cmd *cobra.Command) {
	o.target.addFlags(cmd)
	o.filters.addFlags(cmd)
}

// addRunFlags are for commands that change something in the runs that are named.
func (o *options) addRunFlags(cmd *cobra.Command, runs string) {
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().StringVar(&o.auditLog, "audit-log", "", "`file` for the record of "+runs+" (default: stderr, unless that is a terminal)")
}

func (o *options) addForce(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.force, "force", false,
		"look although a quorum queue deletes what is looked at too often: its delivery limit is -1, or high enough")
}

func (o *options) survey(cmd *cobra.Command, place *place) *survey {
	return &survey{options: o, place: place, terminal: &terminal{in: cmd.InOrStdin(), err: cmd.ErrOrStderr(), yes: o.yes}}
}

// look hands over the messages that the filter selects. All are put back.
func (s *survey) look(ctx context.Context, filter failed.Filter, visit func(*failed.Entry)) (pass.Result, error) {
	s.selector = filter.Selector()
	job := pass.Job{Scan: s.scan(), Progress: s.progress, Decide: func(e *failed.Entry) pass.Verdict {
		if s.selector.Selects(e) {
			visit(e)
		}
		return pass.Verdict{}
	}}
	if err := s.approach(ctx); err != nil {
		return pass.Result{}, cli.RuntimeError{Err: s.place.unknown(err)}
	}
	var refused error
	if s.limited {
		job.Decide = s.cautious(job.Decide, &refused)
	}
	queue := s.place.Queue
	queue.OneFirst = s.limited
	result, err := pass.Run(ctx, queue, job)
	s.last = result
	s.terminal.line("")
	if refused != nil {
		return pass.Result{}, cli.RuntimeError{Err: errors.Join(refused, err)}
	}
	if err == nil && result.Interrupted {
		err = fmt.Errorf("stopped after %s; all put back", failed.Messages(result.Seen))
	}
	if err != nil {
		return result, cli.RuntimeError{Err: s.place.unknown(err)}
	}
	return result, nil
}

// saving has the file in which messages are kept, nil if none is named, while something is done. It goes if nothing was begun.
func (s *survey) saving(flag, name string, do func(*sink) error) error {
	if name == "" {
		if err := canAudit(s.options.auditLog); err != nil {
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
	if err := canAudit(s.options.auditLog, to.file); err != nil {
		return err
	}
	return do(to)
}

// notFound is an error if messages that were named are not there.
func (s *survey) notFound() error {
	missing := s.selector.Missing()
	if len(missing) == 0 {
		return nil
	}
	return cli.RuntimeError{Err: fmt.Errorf("%s not found in %q", failed.Count(len(missing), "id"), s.place.Name)}
}

// sayNone says why nothing is done. It is an error if others may have what was meant.
func (s *survey) sayNone(seen pass.Result) error {
	switch {
	case seen.Seen == 0 && seen.Consumers > 0:
		return cli.RuntimeError{Err: fmt.Errorf("nothing was done: no message was seen in %q, and %s may hold some",
			s.place.Name, failed.Count(seen.Consumers, "other consumer"))}
	case seen.Seen == 0:
		s.terminal.say("%s is empty", s.place.Name)
	default:
		s.terminal.say("no message matches, of %d in %s", seen.Seen, s.place.Name)
	}
	return nil
}

// recordBegin leaves the record of a run that may be killed. Nothing may be done without.
func (s *survey) recordBegin(r Record, meant int) error {
	r.Event, r.Counts = Begin, map[string]int{"meant": meant}
	if err := s.record(r); err != nil {
		return cli.RuntimeError{Err: err}
	}
	return nil
}

// recordEnd leaves the record of a run that ended like this.
func (s *survey) recordEnd(r Record, ended error) error {
	r.Event = End
	if ended != nil {
		r.Error = ended.Error()
	}
	return errors.Join(ended, s.record(r))
}

// countUnverified leaves no number of what nobody knows, but the most that it can be.
func countUnverified(r Record, p pass.Result) {
	if p.Unverified {
		delete(r.Counts, "duplicated")
		r.Counts["duplicated_at_most"] = p.MostDoubled()
	}
}

func (s *survey) record(r Record) error {
	r.At, r.User, r.Vhost, r.Queue = time.Now().UTC(), s.place.user, s.place.Vhost, s.place.Name
	return s.terminal.audit(r, s.options.auditLog)
}

// scan is how many messages are looked at.
func (s *survey) scan() int {
	if s.options.scan == 0 && s.place.Pipeline == "" && s.place.Delayed == "" {
		return foreignScan
	}
	return s.options.scan
}

func (s *survey) progress(p pass.Progress) {
	s.sayWaiting(p)
	s.terminal.line(fmt.Sprintf("%s %d/%d%s", p.Phase, p.Seen, p.Ready, waiting(p)))
}

// sayHidden says what a look cannot show.
func (s *survey) sayHidden(r pass.Result) {
	if r.Consumers > 0 {
		s.terminal.say("%s may hold messages that cannot be seen.", failed.Count(r.Consumers, "other consumer"))
	}
	s.sayVanished(r)
	if s.selector == nil {
		return
	}
	if n := s.selector.Timeless; n > 0 {
		s.terminal.say("%s without a time of failure: not within any time.", failed.Messages(n))
	}
	if missing := s.selector.Missing(); len(missing) > 0 {
		const shown = 5
		s.terminal.say("%s not found: %s", failed.Count(len(missing), "id"), strings.Join(missing[:min(shown, len(missing))], ", "))
	}
}
