package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// DefinitionArgument is the argument of the binding from the failed exchange to the failed queue that holds the
// pipeline's definition, so that the broker describes itself: imports are exact and tools need no Terraform. A
// pipeline of every engine has that binding, and the exchange is a fanout, which ignores arguments.
const DefinitionArgument = "retry-definition"

// maxDefinition is how long a definition may be, in bytes, and maxDefinitionSent how long within a
// request, where each of its quotes takes two. Newer brokers refuse requests over 5,000 bytes that create
// a binding.
const (
	MaxDefinition     = 4000
	maxDefinitionSent = 4900
)

// Fits reports whether a broker accepts the definition.
func (d Definition) Fits() bool {
	text := d.String()
	sent, err := json.Marshal(text)
	return err == nil && len(text) <= MaxDefinition && len(sent) <= maxDefinitionSent
}

const definitionVersion = 1

// definitionBinding holds the pipeline's definition.
func (p Pipeline) definitionBinding() topology.Binding {
	return topology.Binding{
		Source: p.Names().FailedExchange(), Destination: p.Names().FailedQueue(),
		Arguments: topology.Arguments{DefinitionArgument: p.Definition().String()},
	}
}

// definedBy is the pipeline that has its definition in a binding, "" if none. The same argument anywhere else says
// nothing.
func definedBy(b topology.Binding) string {
	name, isFailed := strings.CutSuffix(b.Source, Names("").FailedExchange())
	if _, defines := b.Arguments[DefinitionArgument]; !defines || !isFailed || b.ToExchange || b.Destination != Names(name).FailedQueue() {
		return ""
	}
	return name
}

// Definition is the part of a pipeline that its objects do not show. It grows only with those work
// queues that have a number of attempts of their own.
type Definition struct {
	Version int `json:"version"`
	// Engine is empty for the default one.
	Engine      string   `json:"engine,omitempty"`
	Delays      []string `json:"delays"`
	MaxAttempts int      `json:"max_attempts"`
	RetryOn     []string `json:"retry_on"`
	// What differs from its default only.
	PolicyPriority   int                `json:"policy_priority,omitempty"`
	PolicyDefinition topology.Arguments `json:"policy_definition,omitempty"`
	MaxAge           string             `json:"max_age,omitempty"`
	// QueueMaxAttempts is by work queue.
	QueueMaxAttempts map[string]int `json:"queue_max_attempts,omitempty"`
}

// Definition of the pipeline.
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

// String is the definition as the broker keeps it, compact JSON.
func (d Definition) String() string {
	text, err := json.Marshal(d)
	if err != nil {
		panic("a definition holds strings and numbers only: " + err.Error())
	}
	return string(text)
}

// ParseDefinition reads what String wrote. The error is what there is to say about the argument.
func ParseDefinition(text string) (Definition, error) {
	var versioned struct{ Version int }
	if err := json.Unmarshal([]byte(text), &versioned); err != nil {
		return Definition{}, fmt.Errorf("cannot be read: %w", err)
	}
	switch versioned.Version {
	case definitionVersion:
	case 0:
		return Definition{}, errors.New("has no version")
	default:
		return Definition{}, fmt.Errorf("has version %d, this release knows version %d only: upgrade", versioned.Version, definitionVersion)
	}
	var d Definition
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields() // dropped in silence, a key would be gone with the next change
	if err := decoder.Decode(&d); err != nil {
		return d, fmt.Errorf("was made by a newer release, or by hand: %w: upgrade", err)
	}
	d.PolicyDefinition = topology.DecodedArguments(d.PolicyDefinition)
	return d, d.check()
}

// check finds what no release writes: somebody changed the definition by hand.
func (d Definition) check() error {
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
	return d.checkAttempts()
}

func (d Definition) checkAttempts() error {
	for _, attempts := range append(slices.Sorted(maps.Values(d.QueueMaxAttempts)), d.MaxAttempts) {
		if attempts < FewestAttempts || attempts > MostAttempts {
			return fmt.Errorf("has a wrong number of attempts, %d: it must be from %d to %d", attempts, FewestAttempts, MostAttempts)
		}
	}
	return nil
}
