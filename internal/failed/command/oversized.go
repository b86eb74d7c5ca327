package command

import (
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

// sayOversized names the messages that the broker does not take.
func (s *survey) sayOversized(p pass.Result) {
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
func (s *survey) named(o pass.Oversized) string {
	switch {
	case o.Line > 0:
		return fmt.Sprintf("line %d", o.Line)
	case o.MessageID != "":
		return fmt.Sprintf("message %s (message-id %s, number %d in %s)", o.ID, pasted(o.MessageID), o.Position, s.place.Name)
	default:
		return fmt.Sprintf("message %s (number %d in %s)", o.ID, o.Position, s.place.Name)
	}
}
