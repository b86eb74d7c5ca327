// Package stored reads and writes what an owner of objects keeps on the broker about itself, in arguments of bindings: its
// definition, and notes of bindings of others that it has deleted for a while.
package stored

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// MaxDefinition is how long a definition may be, in bytes, and maxDefinitionSent how long within a
// request, where each of its quotes takes two. Newer brokers refuse requests over 5,000 bytes that create
// a binding.
const (
	MaxDefinition     = 4000
	maxDefinitionSent = 4900
)

// Text is a definition as the broker keeps it, compact JSON.
func Text(definition any) string {
	text, err := json.Marshal(definition)
	if err != nil {
		panic("a definition holds strings and numbers only: " + err.Error())
	}
	return string(text)
}

// Fits reports whether a broker accepts the text of a definition.
func Fits(text string) bool {
	sent, err := json.Marshal(text)
	return err == nil && len(text) <= MaxDefinition && len(sent) <= maxDefinitionSent
}

// Parse reads a definition of this version. The error is what there is to say about the argument.
func Parse(text string, version int, definition any) error {
	var versioned struct{ Version int }
	if err := json.Unmarshal([]byte(text), &versioned); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	switch versioned.Version {
	case version:
	case 0:
		return errors.New("has no version")
	default:
		return fmt.Errorf("has version %d, this release knows version %d only: upgrade", versioned.Version, version)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields() // dropped in silence, a key would be gone with the next change
	if err := decoder.Decode(definition); err != nil {
		return fmt.Errorf("was made by a newer release, or by hand: %w: upgrade", err)
	}
	return nil
}

// Place is where an owner's definition is: an argument of the binding from an exchange to a queue. The exchange is a
// fanout, which ignores arguments.
type Place struct {
	Exchange, Queue, Argument string
	// Owner is what messages call the owner, such as "pipeline".
	Owner string
}

// Binding holds the definition.
func (p Place) Binding(text string) topology.Binding {
	return topology.Binding{Source: p.Exchange, Destination: p.Queue, Arguments: topology.Arguments{p.Argument: text}}
}

// Has reports whether a binding is one that holds a definition, whatever it says. The same argument anywhere else says
// nothing.
func (p Place) Has(b topology.Binding) bool {
	_, defines := b.Arguments[p.Argument]
	return defines && b.Source == p.Exchange && !b.ToExchange && b.Destination == p.Queue
}

// values are what stands where the definition belongs, whatever it is.
func (p Place) values(vhost topology.Topology) []any {
	var found []any
	for _, b := range vhost.Bindings {
		if p.Has(b) {
			found = append(found, b.Arguments[p.Argument])
		}
	}
	return found
}

// Find reads the owner's definition. The error names the binding that has it.
func Find[D any](p Place, vhost topology.Topology, parse func(string) (D, error)) (D, error) {
	var none D
	found := p.values(vhost)
	switch len(found) {
	case 0:
		return none, fmt.Errorf("no binding from %q to %q has the argument %s: there is no %s of this name, or its definition is gone",
			p.Exchange, p.Queue, p.Argument, p.Owner)
	case 1:
	default:
		return none, fmt.Errorf("several bindings from %q to %q have the argument %s, since a change was interrupted: "+
			"remove all but the one that is right:\n%s", p.Exchange, p.Queue, p.Argument, listed(found))
	}
	return read(p, found[0], parse)
}

// Recover is Find for an import: its error says how to restore a definition that is there and not what a release has
// written.
func Recover[D any](p Place, vhost topology.Topology, parse func(string) (D, error)) (D, error) {
	definition, err := Find(p, vhost, parse)
	if err != nil && len(p.values(vhost)) > 0 {
		err = fmt.Errorf("%w.\n\nIf a Terraform state has the %s, run terraform apply there, which restores the definition. "+
			"If none has, write the definition again, as the guide \"Import\" says", err, p.Owner)
	}
	return definition, err
}

// All reads what stands in the place of a definition: two while a change is under way, none without an owner. It is an error if
// one of them is no definition, or one of a newer release.
func All[D any](p Place, vhost topology.Topology, parse func(string) (D, error)) ([]D, error) {
	var all []D
	for _, value := range p.values(vhost) {
		definition, err := read(p, value, parse)
		if err != nil {
			return nil, err
		}
		all = append(all, definition)
	}
	return all, nil
}

func read[D any](p Place, value any, parse func(string) (D, error)) (definition D, err error) {
	text, isText := value.(string)
	if !isText {
		err = errors.New("is no text")
	} else {
		definition, err = parse(text)
	}
	if err != nil {
		err = fmt.Errorf("the argument %s of the binding from %q to %q %w", p.Argument, p.Exchange, p.Queue, err)
	}
	return definition, err
}

func listed(values []any) string {
	var lines []string
	for _, value := range values {
		lines = append(lines, fmt.Sprintf("%.*s", maxShown, fmt.Sprint(value)))
	}
	return strings.Join(lines, "\n")
}

// maxShown is how many characters of a definition are shown.
const maxShown = 500
