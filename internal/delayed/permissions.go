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

// OperatorPermissions are the least that somebody's user needs who looks after the delayed exchange and its unrouted queue, by
// command of the sidecar. A status counts in the levels of every precision.
func OperatorPermissions(n Names) map[string]pipeline.Permissions {
	read := pipeline.Permissions{Configure: pipeline.NoName, Write: pipeline.NoName, Read: pipeline.ExactPattern([]string{n.UnroutedQueue()})}
	replay, imports, status := read, read, read
	replay.Write = pipeline.ExactPattern([]string{n.Exchange(), n.DeliverExchange()})
	imports.Write = pipeline.ExactPattern([]string{n.UnroutedExchange()})
	status.Read = n.ownPattern()
	return map[string]pipeline.Permissions{
		"list": read, "show": read, "export": read, "delete": read, "replay": replay, "import": imports, "repair": imports, "status": status,
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
