package command

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"

// sayBlocked says when the broker begins and ends to accept no messages: without a terminal there is no line of progress that
// would say why nothing happens.
func (s *survey) sayBlocked(p pass.Progress) {
	switch {
	case p.Blocked != "" && s.blocked == "":
		s.console.Say("the broker accepts no messages (%s): waiting", p.Blocked)
	case p.Blocked == "" && s.blocked != "":
		s.console.Say("the broker accepts messages again")
	}
	s.blocked = p.Blocked
}
