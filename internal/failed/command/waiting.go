package command

import (
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

// back says where the messages are that were looked at.
func (s *survey) back() string {
	if s.last.NotBack == 0 {
		return "all put back"
	}
	return fmt.Sprintf("%d of them not back: they expired, somebody took them, or the queue has a delivery limit and "+
		"deletes what is looked at too often", s.last.NotBack)
}

// notBack is an error if messages that were looked at are not back, or some were counted that did not come.
func (s *survey) notBack() error {
	switch {
	case s.last.NotBack > 0:
		return cli.RuntimeError{Err: fmt.Errorf("%s not back in %q", failed.Messages(s.last.NotBack), s.place.Name)}
	case s.last.Vanished > 0:
		return cli.RuntimeError{Err: fmt.Errorf("%s of %q did not come", failed.Messages(s.last.Vanished), s.place.Name)}
	}
	return nil
}

// waiting is why it does not go on.
func waiting(p pass.Progress) string {
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
func (s *survey) sayWaiting(p pass.Progress) {
	if awaits := p.Waiting && p.Missing > 0; awaits != s.awaits {
		if s.awaits = awaits; awaits {
			s.terminal.say("%s", strings.TrimSpace(waiting(p)))
		}
	}
	switch {
	case p.Blocked != "" && s.blocked == "":
		s.terminal.say("the broker accepts no messages (%s): waiting", p.Blocked)
	case p.Blocked == "" && s.blocked != "":
		s.terminal.say("the broker accepts messages again")
	}
	s.blocked = p.Blocked
}

// sayVanished says that messages were counted and did not come.
func (s *survey) sayVanished(p pass.Result) {
	if p.Vanished > 0 {
		s.terminal.say("%s did not come after all: somebody took them or purged the queue, or they expired.", failed.Messages(p.Vanished))
	}
}
