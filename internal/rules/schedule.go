package rules

import (
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
)

// CheckDelays checks the spelling and the range of each delay.
func CheckDelays(delays []string) (problems []problem.Problem) {
	at := problem.Path{"delays"}
	if len(delays) == 0 {
		return one(at, "No delays", `The list is empty. Write at least one delay, such as ["5s"]; ["0s"] retries at once.`)
	}
	for i, delay := range delays {
		if _, err := pipeline.ParseDelay(delay); err != nil {
			problems = append(problems, problem.New(append(at, i), "Invalid delay", "%s.", err))
		}
	}
	return problems
}

// CheckAttempts checks the number of deliveries of a message.
func CheckAttempts(at problem.Path, maxAttempts int64) []problem.Problem {
	switch {
	case maxAttempts < pipeline.FewestAttempts:
		return one(at, "Too few attempts",
			"%d is too few: every delivery counts, the first one included, so %d means that nothing is ever retried. Write 2 or more.",
			maxAttempts, maxAttempts)
	case maxAttempts > pipeline.MostAttempts:
		return one(at, "Too many attempts", "%d is too many: it can be at most %d.", maxAttempts, pipeline.MostAttempts)
	}
	return nil
}

// CheckMaxAge checks the spelling and the range of an age.
func CheckMaxAge(at problem.Path, age string) []problem.Problem {
	if _, err := pipeline.ParseMaxAge(age); err != nil {
		return one(at, "Invalid age", "%s.", err)
	}
	return nil
}

// CheckRetryOn checks the reasons why messages are retried. There must be at least one.
func CheckRetryOn(reasons []string) []problem.Problem {
	at := problem.Path{"retry_on"}
	for i, reason := range reasons {
		if !slices.Contains(pipeline.Reasons(), reason) {
			return one(append(at, i), "Unknown reason", "%q is not a reason for which RabbitMQ dead-letters a message. Known reasons are: %s.",
				reason, strings.Join(pipeline.Reasons(), ", "))
		}
	}
	if !slices.Contains(reasons, pipeline.ReasonRejected) {
		return one(at, "Rejected messages must be retried",
			"%q is missing: a pipeline always retries rejected messages, and retry_on adds other reasons.", pipeline.ReasonRejected)
	}
	return nil
}

func one(at problem.Path, summary, detail string, args ...any) []problem.Problem {
	return []problem.Problem{problem.New(at, summary, detail, args...)}
}

// CheckDelayedExchange checks the name and durations of a delayed exchange.
func CheckDelayedExchange(name, maxDelay, precision string) []problem.Problem {
	problems := slices.Concat(DelayedExchange.CheckName(name), CheckMaxDelay(maxDelay), CheckPrecision(precision, maxDelay))
	if len(problems) > 0 {
		return problems // the other checks need valid durations
	}
	longest, _ := pipeline.ParseDelay(maxDelay)
	unit, _ := pipeline.ParseDelay(precision)
	names := delayed.Names(name)
	top := delayed.Level{Unit: unit, Bit: delayed.LevelCount(longest, unit) - 1}
	return CheckLengths(DelayedExchange, names.UnroutedQueue(), names.Level(top))
}

// CheckMaxDelay checks the spelling and the range of the longest delay.
func CheckMaxDelay(longest string) []problem.Problem {
	_, problems := checkWait("max_delay", longest)
	return problems
}

// CheckPrecision checks the spelling and the range of the unit of delays. The longest delay can be invalid.
func CheckPrecision(precision, longest string) []problem.Problem {
	unit, problems := checkWait("precision", precision)
	most, wrong := checkWait("max_delay", longest)
	if len(problems)+len(wrong) > 0 {
		return problems
	}
	at := problem.Path{"precision"}
	if unit > most {
		return one(at, "Precision too coarse", "%q is longer than max_delay, %q. "+
			"Write a shorter precision (the default is %q) or a longer max_delay.", precision, longest, delayed.DefaultPrecision)
	}
	top := delayed.Level{Unit: unit, Bit: delayed.LevelCount(most, unit) - 1}
	if top.Wait() > pipeline.MaxDelay {
		return one(at, "Precision out of range", "%q needs a level of more than %s, the broker's limit for a TTL. "+
			"Write a precision that divides max_delay.", precision, pipeline.FormatDelay(pipeline.MaxDelay))
	}
	return nil
}

// checkWait parses a positive duration.
func checkWait(key, spelled string) (time.Duration, []problem.Problem) {
	d, err := pipeline.ParseDelay(spelled)
	switch {
	case err != nil:
		return 0, one(problem.Path{key}, "Invalid duration", "%s.", err)
	case d == 0:
		return 0, one(problem.Path{key}, "Invalid duration", "%q is zero: write at least \"1ms\".", spelled)
	}
	return d, nil
}
