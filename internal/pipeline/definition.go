package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// DefinitionArgument is the binding argument that holds the pipeline's definition, on the binding from the failed
// exchange to the failed queue. It makes imports exact, and tools can read it without Terraform. Every engine has that
// binding, and the exchange is a fanout, which ignores arguments.
const DefinitionArgument = "retry-definition"

const definitionVersion = 1

// DefinitionPlace is where the definition is stored.
func (n Names) DefinitionPlace() stored.Place[Definition] {
	return stored.Place[Definition]{
		Exchange: n.FailedExchange(), Queue: n.FailedQueue(), Argument: DefinitionArgument, Owner: "pipeline",
		Version: definitionVersion, Check: (*Definition).check,
	}
}

// DefinedBy returns the pipeline whose definition the binding holds, or "".
func DefinedBy(b topology.Binding) string {
	name, isFailed := strings.CutSuffix(b.Source, Names("").FailedExchange())
	if !isFailed || !Names(name).DefinitionPlace().Has(b) {
		return ""
	}
	return name
}

// Definition is the part of a pipeline that its objects do not show. Only work queues with their own number of attempts
// add to its size.
type Definition struct {
	Version int `json:"version"`
	// Engine is empty for the default engine.
	Engine      string   `json:"engine,omitempty"`
	Delays      []string `json:"delays"`
	MaxAttempts int      `json:"max_attempts"`
	RetryOn     []string `json:"retry_on"`
	// Settings from here on are written only if they differ from their default.
	PolicyPriority   int                `json:"policy_priority,omitempty"`
	PolicyDefinition topology.Arguments `json:"policy_definition,omitempty"`
	MaxAge           string             `json:"max_age,omitempty"`
	// QueueMaxAttempts is keyed by work queue.
	QueueMaxAttempts map[string]int `json:"queue_max_attempts,omitempty"`
}

// Definition returns the pipeline's definition.
func (p Pipeline) Definition() Definition {
	d := Definition{
		Version:     definitionVersion,
		MaxAttempts: p.MaxAttempts,
		RetryOn:     slices.Sorted(slices.Values(p.RetryOn)),

		PolicyDefinition: p.PolicyDefinition,
		MaxAge:           p.MaxAge.Spelling,
		QueueMaxAttempts: map[string]int{},
	}
	for name, workQueue := range p.WorkQueues {
		if workQueue.MaxAttempts != 0 {
			d.QueueMaxAttempts[name] = workQueue.MaxAttempts
		}
	}
	if p.EngineName() != EngineWorker {
		d.Engine = p.Engine
	}
	if p.PolicyPriority != DefaultPolicyPriority {
		d.PolicyPriority = p.PolicyPriority
	}
	for _, delay := range p.Delays {
		d.Delays = append(d.Delays, delay.Spelling)
	}
	return d
}

// describe copies a valid definition into the pipeline, except for the attempts of single work queues.
func (d Definition) describe(p *Pipeline) {
	p.Engine, p.MaxAttempts, p.RetryOn = d.Engine, d.MaxAttempts, d.RetryOn
	p.PolicyPriority = cmp.Or(d.PolicyPriority, DefaultPolicyPriority)
	p.PolicyDefinition = d.PolicyDefinition
	for _, spelling := range d.Delays {
		wait, _ := ParseDelay(spelling)
		p.Delays = append(p.Delays, Delay{Wait: wait, Spelling: spelling})
	}
	p.MaxAge.Spelling = d.MaxAge
	p.MaxAge.Wait, _ = ParseMaxAge(d.MaxAge) // an empty age means no limit
}

// String returns the definition as it is stored on the broker.
func (d Definition) String() string { return stored.Text(d) }

// check decodes the policy definition, and finds values that no release writes, so somebody edited the definition by hand.
func (d *Definition) check() error {
	d.PolicyDefinition = topology.DecodedArguments(d.PolicyDefinition)
	if _, known := engines[d.Engine]; !known {
		return fmt.Errorf("has an engine %q, which this release does not know: upgrade", d.Engine)
	}
	if len(d.Delays) == 0 || d.MaxAttempts == 0 {
		return errors.New("lacks delays or max_attempts")
	}
	for i, spelling := range d.Delays {
		if _, err := ParseDelay(spelling); err != nil {
			return fmt.Errorf("has a wrong delay %d: %w", i, err)
		}
	}
	if d.MaxAge != "" {
		if _, err := ParseMaxAge(d.MaxAge); err != nil {
			return fmt.Errorf("has a wrong max_age: %w", err)
		}
	}
	if !slices.Contains(d.RetryOn, ReasonRejected) {
		return fmt.Errorf("lacks %q in retry_on", ReasonRejected)
	}
	for i, reason := range d.RetryOn {
		if !slices.Contains(Reasons(), reason) || slices.Contains(d.RetryOn[:i], reason) {
			return fmt.Errorf("has a wrong reason in retry_on: %q", reason)
		}
	}
	for _, attempts := range append(slices.Sorted(maps.Values(d.QueueMaxAttempts)), d.MaxAttempts) {
		if attempts < FewestAttempts || attempts > MostAttempts {
			return fmt.Errorf("has a wrong number of attempts, %d: it must be from %d to %d", attempts, FewestAttempts, MostAttempts)
		}
	}
	return nil
}
