// Package stored reads and writes data that an owner keeps about itself in binding arguments on the broker. These are
// its definition, and notes of other owners' bindings that it deleted temporarily. An [Owner] tells a change of them.
package stored

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// MaxDefinition limits the length of a definition, in bytes. maxDefinitionSent limits its length in a request, where
// each quote takes two bytes. Newer brokers refuse requests over 5,000 bytes that create a binding.
const (
	MaxDefinition     = 4000
	maxDefinitionSent = 4900
)

// Text returns a definition as it is stored on the broker, in compact JSON.
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

// checkHead checks whether this release reads a definition. An extensible one can have keys that this release ignores.
func checkHead(text string, version int) (extensible bool, err error) {
	var head map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return false, fmt.Errorf("cannot be read: %w", err)
	}
	minReader, extensible := head["min_reader"]
	if extensible {
		if err := checkReader(minReader); err != nil {
			return false, err
		}
	}
	var found int
	if raw, has := head["version"]; has {
		if err := json.Unmarshal(raw, &found); err != nil && extensible {
			return false, fmt.Errorf("has the version %.100s: it %w", raw, &release.NewerError{})
		} else if err != nil {
			return false, fmt.Errorf("cannot be read: %w", err)
		}
	}
	switch found {
	case 0:
		return false, errors.New("has no version")
	case version:
		return extensible, nil
	}
	return false, fmt.Errorf("has version %d: it %w", found, &release.NewerError{})
}

// checkReader checks a min_reader. One of another form can only be newer.
func checkReader(minReader json.RawMessage) error {
	var text string
	if err := json.Unmarshal(minReader, &text); err != nil {
		return fmt.Errorf("has the min_reader %.100s: it %w", minReader, &release.NewerError{})
	}
	err := release.Check(text)
	if err != nil && !release.IsNewer(err) {
		return fmt.Errorf("%w: it %w", err, &release.NewerError{})
	}
	return err
}

// Place is where an owner's definition D is stored: an argument of the binding from an exchange to a queue. The exchange
// is a fanout, which ignores arguments.
type Place[D any] struct {
	Exchange, Queue, Argument string
	// Owner is the owner's kind in messages, such as "pipeline".
	Owner string
	// Version is the version of the definitions that this release writes.
	Version int
	// Check finds values that no release writes.
	Check func(*D) error
}

// Binding returns the binding that holds the definition.
func (p Place[D]) Binding(text string) topology.Binding {
	return topology.Binding{Source: p.Exchange, Destination: p.Queue, Arguments: topology.Arguments{p.Argument: text}}
}

// Has reports whether a binding holds a definition, valid or not. The argument counts only on the right binding.
func (p Place[D]) Has(b topology.Binding) bool {
	_, defines := b.Arguments[p.Argument]
	return defines && b.Source == p.Exchange && !b.ToExchange && b.Destination == p.Queue
}

// Parse reads the text of a definition. With a min_reader that this release reads, it ignores unknown keys. The error
// says what is wrong with the argument. It is a *release.NewerError if only a later release reads the definition.
func (p Place[D]) Parse(text string) (D, error) { return p.parse(text, false) }

// parse is Parse. Unknown keys of a definition to be replaced, which would be lost, are a *release.NewerError.
func (p Place[D]) parse(text string, replaced bool) (definition D, err error) {
	extensible, err := checkHead(text, p.Version)
	if err != nil {
		return definition, err
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&definition)
	switch {
	case err != nil && !extensible:
		return definition, fmt.Errorf("was changed by hand: %w", err)
	case err != nil && replaced:
		return definition, &release.NewerError{}
	case err != nil:
		lenient := json.NewDecoder(strings.NewReader(text))
		lenient.UseNumber()
		if err := lenient.Decode(&definition); err != nil {
			return definition, err
		}
	}
	return definition, p.Check(&definition)
}

// values returns the values of the definition argument, valid or not.
func (p Place[D]) values(vhost topology.Topology) []any {
	var found []any
	for _, b := range vhost.Bindings {
		if p.Has(b) {
			found = append(found, b.Arguments[p.Argument])
		}
	}
	return found
}

// Find reads the owner's definition. An error names the binding that holds it.
func (p Place[D]) Find(vhost topology.Topology) (definition D, err error) {
	found := p.values(vhost)
	switch len(found) {
	case 0:
		return definition, fmt.Errorf("no binding from %q to %q has the argument %s: there is no %s of this name, or its definition is gone",
			p.Exchange, p.Queue, p.Argument, p.Owner)
	case 1:
	default:
		return definition, fmt.Errorf("an interrupted change has left several bindings from %q to %q with the argument %s. "+
			"Remove all but the right one:\n%s", p.Exchange, p.Queue, p.Argument, listed(found))
	}
	return p.read(found[0], false)
}

// Recover calls Find for an import. If the definition is damaged, the error also says how to restore it. An apply must not replace the
// definition of a newer release.
func (p Place[D]) Recover(vhost topology.Topology) (D, error) {
	definition, err := p.Find(vhost)
	if err != nil && !release.IsNewer(err) && len(p.values(vhost)) > 0 {
		err = fmt.Errorf("%w.\n\nIf a Terraform state has the %s, run terraform apply there, which restores the definition. "+
			"If no state has it, write the definition again, as the guide \"Changing, moving, importing, destroying\" says", err, p.Owner)
	}
	return definition, err
}

// All reads every definition of an owner: two during a change, and none if there is no owner. It returns the errors of those
// that are invalid or from a newer release.
func (p Place[D]) All(vhost topology.Topology) ([]D, error) { return p.all(vhost, false) }

// CheckReplaceable returns an error if a definition is invalid, or *release.NewerError if an apply would drop what a newer
// release wrote.
func (p Place[D]) CheckReplaceable(vhost topology.Topology) error {
	_, err := p.all(vhost, true)
	return err
}

func (p Place[D]) all(vhost topology.Topology, replaced bool) ([]D, error) {
	var all []D
	var failed []error
	for _, value := range p.values(vhost) {
		definition, err := p.read(value, replaced)
		all, failed = append(all, definition), append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	return all, nil
}

func (p Place[D]) read(value any, replaced bool) (definition D, err error) {
	text, isText := value.(string)
	if !isText {
		err = errors.New("is no text")
	} else {
		definition, err = p.parse(text, replaced)
	}
	if err != nil {
		err = fmt.Errorf("the argument %s of the binding from %q to %q %w", p.Argument, p.Exchange, p.Queue, err)
	}
	return definition, err
}

func listed(values []any) string {
	var lines []string
	for _, value := range values {
		lines = append(lines, fmt.Sprintf("%.500s", fmt.Sprint(value)))
	}
	return strings.Join(lines, "\n")
}
