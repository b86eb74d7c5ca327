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

// Parse reads a definition of this version. With a min_reader that this release reads, it ignores unknown keys. The error says what is
// wrong with the argument. It is a *release.NewerError if only a later release reads the definition.
func Parse(text string, version int, definition any) error {
	known, err := parse(text, version, definition)
	if err == nil && !known {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		err = decoder.Decode(definition)
	}
	return err
}

// ParseToReplace is Parse for an owner, whose next change would drop unknown keys. They are a *release.NewerError.
func ParseToReplace(text string, version int, definition any) error {
	known, err := parse(text, version, definition)
	if err == nil && !known {
		return &release.NewerError{}
	}
	return err
}

// parse reads a definition, unless it has unknown keys that this release can ignore.
func parse(text string, version int, definition any) (known bool, err error) {
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
	switch {
	case found == 0:
		return false, errors.New("has no version")
	case found != version:
		return false, fmt.Errorf("has version %d: it %w", found, &release.NewerError{})
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	err = decoder.Decode(definition)
	if err != nil && !extensible {
		return false, fmt.Errorf("was changed by hand: %w", err)
	}
	return err == nil, nil
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

// Place is where an owner's definition is stored: an argument of the binding from an exchange to a queue. The exchange
// is a fanout, which ignores arguments.
type Place struct {
	Exchange, Queue, Argument string
	// Owner is the owner's kind in messages, such as "pipeline".
	Owner string
}

// Binding returns the binding that holds the definition.
func (p Place) Binding(text string) topology.Binding {
	return topology.Binding{Source: p.Exchange, Destination: p.Queue, Arguments: topology.Arguments{p.Argument: text}}
}

// Has reports whether a binding holds a definition, valid or not. The argument counts only on the right binding.
func (p Place) Has(b topology.Binding) bool {
	_, defines := b.Arguments[p.Argument]
	return defines && b.Source == p.Exchange && !b.ToExchange && b.Destination == p.Queue
}

// values returns the values of the definition argument, valid or not.
func (p Place) values(vhost topology.Topology) []any {
	var found []any
	for _, b := range vhost.Bindings {
		if p.Has(b) {
			found = append(found, b.Arguments[p.Argument])
		}
	}
	return found
}

// Find reads the owner's definition. An error names the binding that holds it.
func Find[D any](p Place, vhost topology.Topology, parse func(string) (D, error)) (D, error) {
	var none D
	found := p.values(vhost)
	switch len(found) {
	case 0:
		return none, fmt.Errorf("no binding from %q to %q has the argument %s: there is no %s of this name, or its definition is gone",
			p.Exchange, p.Queue, p.Argument, p.Owner)
	case 1:
	default:
		return none, fmt.Errorf("an interrupted change has left several bindings from %q to %q with the argument %s. "+
			"Remove all but the right one:\n%s", p.Exchange, p.Queue, p.Argument, listed(found))
	}
	return read(p, found[0], parse)
}

// Recover calls Find for an import. If the definition is damaged, the error also says how to restore it. An apply must not replace the
// definition of a newer release.
func Recover[D any](p Place, vhost topology.Topology, parse func(string) (D, error)) (D, error) {
	definition, err := Find(p, vhost, parse)
	if err != nil && !release.IsNewer(err) && len(p.values(vhost)) > 0 {
		err = fmt.Errorf("%w.\n\nIf a Terraform state has the %s, run terraform apply there, which restores the definition. "+
			"If no state has it, write the definition again, as the guide \"Changing, moving, importing, destroying\" says", err, p.Owner)
	}
	return definition, err
}

// All reads every definition of an owner: two during a change, and none if there is no owner. It returns the errors of those
// that are invalid or from a newer release.
func All[D any](p Place, vhost topology.Topology, parse func(string) (D, error)) ([]D, error) {
	var all []D
	var failed []error
	for _, value := range p.values(vhost) {
		definition, err := read(p, value, parse)
		all, failed = append(all, definition), append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return nil, err
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

// maxShown limits a definition in messages, in characters.
const maxShown = 500
