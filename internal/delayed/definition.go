package delayed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// DefinitionArgument is the binding argument that holds the definition, on the binding from the unrouted exchange to
// the unrouted queue. It makes imports exact.
const DefinitionArgument = "delay-definition"

const definitionVersion = 1

// Definition holds the settings that a delayed exchange expands from.
type Definition struct {
	Version   int    `json:"version"`
	Type      string `json:"type"`
	MaxDelay  string `json:"max_delay"`
	Precision string `json:"precision"`
	// PolicyPriority is left out if it is the default.
	PolicyPriority int `json:"policy_priority,omitempty"`
}

// Definition returns the definition of the delayed exchange.
func (e Exchange) Definition() Definition {
	d := Definition{Version: definitionVersion, Type: e.Type, MaxDelay: e.MaxDelay.Spelling, Precision: e.Precision.Spelling}
	if e.PolicyPriority != DefaultPolicyPriority {
		d.PolicyPriority = e.PolicyPriority
	}
	return d
}

// String returns the definition as it is stored on the broker.
func (d Definition) String() string { return stored.Text(d) }

// ParseDefinition reads the text that String wrote. The error says what is wrong with the argument.
func ParseDefinition(text string) (Definition, error) { return parseDefinition(text, stored.Parse) }

// parseToReplace is [ParseDefinition] for an apply that writes the definition again.
func parseToReplace(text string) (Definition, error) {
	return parseDefinition(text, stored.ParseToReplace)
}

func parseDefinition(text string, parse func(text string, version int, definition any) error) (Definition, error) {
	var d Definition
	if err := parse(text, definitionVersion, &d); err != nil {
		return d, err
	}
	return d, d.check()
}

// check finds values that no release writes, so somebody edited the definition by hand.
func (d Definition) check() error {
	if !slices.Contains(Types(), d.Type) {
		return fmt.Errorf("has a type %q, which this release does not know", d.Type)
	}
	longest, err := pipeline.ParseDelay(d.MaxDelay)
	if err != nil {
		return fmt.Errorf("has a wrong max_delay: %w", err)
	}
	unit, err := pipeline.ParseDelay(d.Precision)
	switch {
	case err != nil:
		return fmt.Errorf("has a wrong precision: %w", err)
	case unit == 0 || longest < unit:
		return errors.New("has a precision of zero, or a precision longer than max_delay")
	}
	return nil
}

func (n Names) definitionPlace() stored.Place {
	return stored.Place{Exchange: n.UnroutedExchange(), Queue: n.UnroutedQueue(), Argument: DefinitionArgument, Owner: "delayed exchange"}
}

// Found lists the names of all delayed exchanges with a definition, valid or not.
func Found(vhost topology.Topology) []string {
	var names []string
	for _, b := range vhost.Bindings {
		name, is := strings.CutSuffix(b.Source, Names("").UnroutedExchange())
		if is && name != "" && Names(name).definitionPlace().Has(b) {
			names = append(names, name)
		}
	}
	return topology.Distinct(names)
}

// FindDefinition reads the definition. An error names the binding that holds it.
func FindDefinition(n Names, vhost topology.Topology) (Definition, error) {
	return stored.Find(n.definitionPlace(), vhost, ParseDefinition)
}

// CheckReplaceable returns an error if a definition is invalid, or *release.NewerError if an apply would drop what a newer release wrote.
func CheckReplaceable(n Names, vhost topology.Topology) error {
	_, err := stored.All(n.definitionPlace(), vhost, parseToReplace)
	return err
}

// Recover reads a specification back from its vhost. Owned finds the retired levels, which are not in the definition.
func Recover(name, vhostName string, vhost topology.Topology) (Exchange, error) {
	e := Exchange{Name: name, Vhost: vhostName}
	definition, err := stored.Recover(e.Names().definitionPlace(), vhost, ParseDefinition)
	if err != nil {
		return e, err
	}
	e.Type, e.PolicyPriority = definition.Type, cmp.Or(definition.PolicyPriority, DefaultPolicyPriority)
	e.MaxDelay.Spelling, e.Precision.Spelling = definition.MaxDelay, definition.Precision
	e.MaxDelay.Wait, _ = pipeline.ParseDelay(definition.MaxDelay) // check found both valid
	e.Precision.Wait, _ = pipeline.ParseDelay(definition.Precision)
	return e, nil
}
