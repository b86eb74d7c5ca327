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

// check finds values that no release writes, so somebody edited the definition by hand.
func (d *Definition) check() error {
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

// DefinitionPlace is where the definition is stored.
func (n Names) DefinitionPlace() stored.Place[Definition] {
	return stored.Place[Definition]{
		Exchange: n.UnroutedExchange(), Queue: n.UnroutedQueue(), Argument: DefinitionArgument, Owner: "delayed exchange",
		Version: definitionVersion, Check: (*Definition).check,
	}
}

// Found lists the names of all delayed exchanges with a definition, valid or not.
func Found(vhost topology.Topology) []string {
	var names []string
	for _, b := range vhost.Bindings {
		name, is := strings.CutSuffix(b.Source, Names("").UnroutedExchange())
		if is && name != "" && Names(name).DefinitionPlace().Has(b) {
			names = append(names, name)
		}
	}
	return topology.Distinct(names)
}

// Recover reads a specification back from its vhost. Owned finds the retired levels, which are not in the definition.
func Recover(name, vhostName string, vhost topology.Topology) (Exchange, error) {
	e := Exchange{Name: name, Vhost: vhostName}
	definition, err := e.Names().DefinitionPlace().Recover(vhost)
	if err != nil {
		return e, err
	}
	e.Type, e.PolicyPriority = definition.Type, cmp.Or(definition.PolicyPriority, DefaultPolicyPriority)
	e.MaxDelay.Spelling, e.Precision.Spelling = definition.MaxDelay, definition.Precision
	e.MaxDelay.Wait, _ = pipeline.ParseDelay(definition.MaxDelay) // check found both valid
	e.Precision.Wait, _ = pipeline.ParseDelay(definition.Precision)
	return e, nil
}
