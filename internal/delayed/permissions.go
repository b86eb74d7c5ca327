package delayed

import (
	"regexp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// PublisherPermissions are the least that the user of a publisher needs. Whoever may write to a level could have messages
// delivered early, or hold up those of others.
func PublisherPermissions(n Names) pipeline.Permissions {
	return pipeline.Permissions{
		Configure: pipeline.NoName, Write: pipeline.ExactPattern([]string{n.Exchange()}), Read: pipeline.NoName,
	}
}

// WorkerPermissions are the least that the sidecar's user needs. The levels of every precision are among them: a change of
// it needs no other permissions, before the sidecar knows of it and after.
func WorkerPermissions(n Names) pipeline.Permissions {
	return pipeline.Permissions{
		Configure: pipeline.NoName,
		Write:     "^" + regexp.QuoteMeta(string(n)) + `\.(deliver|delay\.(unrouted|` + levelPattern + `))$`,
		Read:      pipeline.ExactPattern([]string{n.Inbox()}),
	}
}
