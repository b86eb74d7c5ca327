package workerconfig

import (
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
)

// ValidateDelayedExchange finds what is wrong with one delayed exchange of the configuration. Paths begin within its object.
func ValidateDelayedExchange(w delayed.Worker) []problem.Problem {
	problems := slices.Concat(
		checkVersion(w.Version, delayed.WorkerVersion),
		checkVhost(w.Vhost),
		CheckDelayedExchangeName(w.Name),
		CheckMaxDelay(w.MaxDelay),
		CheckPrecision(w.Precision, w.MaxDelay),
	)
	if len(problems) > 0 {
		return problems // the rest is about levels that are valid
	}
	longest, _ := pipeline.ParseDelay(w.MaxDelay)
	unit, _ := pipeline.ParseDelay(w.Precision)
	return checkLevelNames(w.Name, longest, unit)
}

// CheckDelayedExchangeName checks the name of a delayed exchange by itself.
func CheckDelayedExchangeName(name string) []problem.Problem { return checkName(DelayedExchange, name) }

// CheckMaxDelay checks the spelling and the range of the longest delay.
func CheckMaxDelay(longest string) []problem.Problem {
	_, problems := checkWait("max_delay", longest)
	return problems
}

// CheckPrecision checks the spelling and the range of the unit of delays. The longest delay may be wrong.
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
		return one(at, "Precision out of range", "%q takes a level of more than %s, the broker's limit for a TTL. "+
			"Write one that divides max_delay.", precision, pipeline.FormatDelay(pipeline.MaxDelay))
	}
	return nil
}

// checkWait reads a duration of some length.
func checkWait(key, spelled string) (time.Duration, []problem.Problem) {
	d, err := pipeline.ParseDelay(spelled)
	switch {
	case err != nil:
		return 0, one(problem.Path{key}, "Invalid duration", "%s.", err)
	case d == 0:
		return 0, one(problem.Path{key}, "Invalid duration", "%q is no time: write at least \"1ms\".", spelled)
	}
	return d, nil
}

// checkLevelNames looks at the longest name that the delayed exchange's expands to.
func checkLevelNames(name string, longest, unit time.Duration) []problem.Problem {
	names := delayed.Names(name)
	top := delayed.Level{Unit: unit, Bit: delayed.LevelCount(longest, unit) - 1}
	for _, expanded := range []string{names.UnroutedQueue(), names.Level(top)} {
		if len(expanded) > MaxName {
			return []problem.Problem{NameTooLong(DelayedExchange, expanded, NamesAreShort)}
		}
	}
	return nil
}
