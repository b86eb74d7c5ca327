// Package rules checks names, delays and ages, for the provider's plans and for the sidecar's configuration.
package rules

import (
	"regexp"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
)

// FlowKind is a kind of object that the sidecar works on.
type FlowKind string

// Kinds, spelled as in logs, metrics and readiness.
const (
	Pipeline        FlowKind = "pipeline"
	DelayedExchange FlowKind = "delayed_exchange"
)

// Words returns the kind as it appears in sentences.
func (kind FlowKind) Words() string {
	if kind == DelayedExchange {
		return "delayed exchange"
	}
	return string(kind)
}

// MaxName is the maximum length of an exchange's or queue's name, in bytes (AMQP's short string).
const MaxName = 255

// Brokers remove line breaks from the names of exchanges and queues, but not from the names in arguments and policies.
const (
	lineBreaks = "\r\n"
	lineBreak  = "%q has a line break, which brokers leave out, so the object would have another name. Leave it out."
)

// The names "." and "..".
const (
	dots    = "Name that URLs cannot contain"
	dotsAre = "HTTP clients and proxies take %q for a step within a path, so the management API never sees the name. Choose another name."
)

func isDots(name string) bool { return name == "." || name == ".." }

// NamesAreShort says why brokers refuse a name that is longer than [MaxName].
const NamesAreShort = "names can have at most 255 bytes"

// CheckName checks the name of a pipeline or delayed exchange by itself.
func (kind FlowKind) CheckName(name string) []problem.Problem {
	at := problem.Path{"name"}
	switch {
	case name == "":
		return one(at, "Empty "+kind.Words()+" name",
			"The name is missing. Name the %s: its exchanges and queues begin with this name.", kind.Words())
	case strings.Contains(name, pipeline.Separator):
		return one(at, "Reserved character in the "+kind.Words()+"'s name",
			"%q contains %q, which separates the parts of policy names. "+
				"Use another character, such as a dot or a hyphen; names of work queues and vhosts can contain it.",
			name, pipeline.Separator)
	case strings.ContainsAny(name, lineBreaks):
		return one(at, "Line break in the "+kind.Words()+"'s name", lineBreak, name)
	case isDots(name):
		return one(at, dots, dotsAre, name)
	case strings.HasPrefix(name+".", "amq."):
		return one(at, "Reserved "+kind.Words()+" name",
			"Brokers keep names that begin with \"amq.\" for themselves. Choose another name than %q.", name)
	case likeRetryQueue.MatchString(name):
		return one(at, "Name of a retry queue",
			"%q is like a retry queue of a pipeline %q, whose policy would cover the queues of this %s. "+
				"Choose a name without %q before a digit.",
			name, likeRetryQueue.FindStringSubmatch(name)[1], kind.Words(), ".retry.")
	}
	return nil
}

// likeRetryQueue matches names that another pipeline's policy covers.
var likeRetryQueue = regexp.MustCompile(`^(.+)\.retry\.\d`)

// NameTooLong describes a name whose longest expanded name is too long.
func NameTooLong(kind FlowKind, expanded, why string) problem.Problem {
	return problem.New(problem.Path{"name"}, "Name too long",
		"The %s's name expands to %q, and %s. Choose a shorter name.", kind.Words(), expanded, why)
}

// CheckLengths finds the first expanded name that is too long.
func CheckLengths(kind FlowKind, expanded ...string) []problem.Problem {
	for _, name := range expanded {
		if len(name) > MaxName {
			return []problem.Problem{NameTooLong(kind, name, NamesAreShort)}
		}
	}
	return nil
}

// CheckQueueName checks the name of the work queue at the path. If the pipeline's name is not known yet, it is empty.
func CheckQueueName(at problem.Path, names pipeline.Names, queue string) []problem.Problem {
	switch {
	case queue == "":
		return one(at, "Empty work queue name", "The name is missing. Name the queue that your consumers read.")
	case names != "" && names.OwnsQueue(queue):
		return one(at, "Work queue belongs to the pipeline",
			"%q is one of the pipeline's own queues: its messages would circulate forever. Name the queue that your consumers read.", queue)
	}
	return CheckAnyQueueName(at, queue)
}

// CheckAnyQueueName checks a name against the rules for all queues.
func CheckAnyQueueName(at problem.Path, queue string) []problem.Problem {
	switch {
	case len(queue) > MaxName:
		return one(at, "Name too long", "%q is too long: %s.", queue, NamesAreShort)
	case strings.ContainsAny(queue, lineBreaks):
		return one(at, "Line break in a queue's name", lineBreak, queue)
	case isDots(queue):
		return one(at, dots, dotsAre, queue)
	}
	return nil
}
