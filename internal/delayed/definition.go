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

// DefinitionArgument is the argument of the binding from the unrouted exchange to the unrouted queue that holds the
// definition, so that the broker describes itself: imports are exact.
const DefinitionArgument = "delay-definition"

const definitionVersion = 1

// Definition is what a delayed exchange is an expansion of.
type Definition struct {
	Version   int    `json:"version"`
	Type      string `json:"type"`
	MaxDelay  string `json:"max_delay"`
	Precision string `json:"precision"`
	// PolicyPriority is empty for the default one.
	PolicyPriority int `json:"policy_priority,omitempty"`
}

// Definition of the delayed exchange.
func (e Exchange) Definition() Definition {
	d := Definition{Version: definitionVersion, Type: e.Type, MaxDelay: e.MaxDelay.Spelling, Precision: e.Precision.Spelling}
	if e.PolicyPriority != DefaultPolicyPriority {
		d.PolicyPriority = e.PolicyPriority
	}
	return d
}

// String is the definition as the broker keeps it.
func (d Definition) String() string { return stored.Text(d) }

// ParseDefinition reads what String wrote. The error is what there is to say about the argument.
func ParseDefinition(text string) (Definition, error) {
	var d Definition
	if err := stored.Parse(text, definitionVersion, &d); err != nil {
		return d, err
	}
	return d, d.check()
}

// check finds what no release writes: somebody changed the definition by hand.
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
		return errors.New("has a precision of zero, or one that is longer than max_delay")
	}
	return nil
}

// definitionPlace is where the definition is.
func (n Names) definitionPlace() stored.Place {
	return stored.Place{Exchange: n.UnroutedExchange(), Queue: n.UnroutedQueue(), Argument: DefinitionArgument, Owner: "delayed exchange"}
}

// Found lists the delayed exchanges in a vhost by name: those whose definition is there, whatever it says.
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

// FindDefinition reads the definition. The error names the binding that has it.
func FindDefinition(n Names, vhost topology.Topology) (Definition, error) {
	return stored.Find(n.definitionPlace(), vhost, ParseDefinition)
}

// DamagedDefinition is an error if what stands in the place of the definition is none, or one of a newer release.
func DamagedDefinition(n Names, vhost topology.Topology) error {
	_, err := stored.All(n.definitionPlace(), vhost, ParseDefinition)
	return err
}

// Recover reads a specification back from a vhost that holds it. Levels that are not in it are retired, and Owned finds
// them.
func Recover(name, vhostName string, vhost topology.Topology) (Exchange, error) {
	e := Exchange{Name: name, Vhost: vhostName}
	definition, err := stored.Recover(e.Names().definitionPlace(), vhost, ParseDefinition)
	if err != nil {
		return e, err
	}
	e.Type, e.PolicyPriority = definition.Type, cmp.Or(definition.PolicyPriority, DefaultPolicyPriority)
	e.MaxDelay.Spelling, e.Precision.Spelling = definition.MaxDelay, definition.Precision
	e.MaxDelay.Wait, _ = pipeline.ParseDelay(definition.MaxDelay) // both are valid, see check
	e.Precision.Wait, _ = pipeline.ParseDelay(definition.Precision)
	return e, nil
}
