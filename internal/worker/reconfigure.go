package worker

import (
	"maps"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// reconfigure puts a new configuration of the session's pipeline in force. What was sent to the broker
// keeps its verdict. What the broker does not take is judged anew before it is published again, as it
// would be if it were delivered again.
func (s *session) reconfigure(p *deadletter.Pipeline) {
	s.pipeline = p
	for _, publisher := range s.publishers() {
		// What was refused may go elsewhere now, and would never be answered there.
		publisher.nackedSince = time.Time{}
	}
	clear(s.refusedSince)
	maps.DeleteFunc(s.detours, func(delay time.Duration, _ time.Time) bool { return !slices.Contains(p.Delays(), delay) })
	s.log.Info("configuration changed")
}

// rejudged judges a message anew if the configuration has changed, and tells whether it has.
func (s *session) rejudged(m *message) bool {
	if m.judgedBy == s.pipeline {
		return false
	}
	m.verdict = s.judge(m)
	return true
}
