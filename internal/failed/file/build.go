package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// build makes properties from their view.
func build(n *node, letters types) (*content.Properties, error) {
	if !n.isObject {
		return nil, errors.New("properties: is not an object")
	}
	p := &content.Properties{}
	for _, m := range n.members {
		if err := setProperty(p, m, letters); err != nil {
			return nil, fmt.Errorf("properties%w", err)
		}
	}
	return p, nil
}

func setProperty(p *content.Properties, m member, letters types) error {
	at := pointer("", m.name)
	i := slices.Index(names[:], m.name)
	if i < 0 {
		return fmt.Errorf("%s: there is no such property", at)
	}
	property := content.Property(i) //nolint:gosec // an index of names
	if property == content.Headers {
		if !m.value.isObject {
			return fmt.Errorf("%s: is not an object", at)
		}
		t, err := table(m.value, at, letters)
		p.SetHeaders(t)
		return err
	}
	text, isText := m.value.scalar.(string)
	if property.IsText() {
		if !isText || !p.SetText(property, text) {
			return fmt.Errorf("%s: must be a text of at most %d bytes", at, maxShort)
		}
		return nil
	}
	if number, ok := m.value.scalar.(json.Number); ok {
		text = integral(number.String())
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || !p.SetNumber(property, n) {
		return fmt.Errorf("%s: must be a number that fits", at)
	}
	return nil
}

func table(n *node, at string, letters types) (content.Table, error) {
	t := content.Table{}
	for _, m := range n.members {
		where := pointer(at, m.name)
		if len(m.name) > maxShort {
			return nil, fmt.Errorf("%.100s…: its name is longer than %d bytes", where, maxShort)
		}
		v, err := value(m.value, where, letters)
		if err != nil {
			return nil, err
		}
		t = t.With(m.name, v)
	}
	return t, nil
}

func value(n *node, at string, letters types) (content.Value, error) {
	letter := letters[at]
	switch scalar := n.scalar.(type) {
	case string:
		return typed(at, letter, content.TypeText, scalar)
	case json.Number:
		return typed(at, letter, content.TypeInt64, scalar.String())
	}
	if letter != "" {
		return content.Value{}, fmt.Errorf("%s: is not a value of type %s; remove its entry in types to make it a JSON value", at, letter)
	}
	switch {
	case n.isObject:
		t, err := table(n, at, letters)
		return content.Value{Type: content.TypeTable, Bytes: t}, err
	case n.isArray:
		return array(n, at, letters)
	case n.scalar == true:
		return content.Value{Type: content.TypeBool, Bytes: []byte{1}}, nil
	case n.scalar == false:
		return content.Value{Type: content.TypeBool, Bytes: []byte{0}}, nil
	}
	return content.Value{Type: content.TypeVoid}, nil
}

// typed reads a value of the type that letter names. If letter is "", the parameter otherwise is the type.
func typed(at, letter string, otherwise byte, text string) (content.Value, error) {
	switch {
	case len(letter) > 1:
		return content.Value{}, fmt.Errorf("%s: there is no type %.20q", at, letter)
	case letter != "":
		otherwise = letter[0]
	}
	if otherwise == content.TypeText {
		return content.Text(text), nil
	}
	v, err := unspell(otherwise, text)
	if err != nil && letter == "" {
		return v, fmt.Errorf(`%s: %.100s is not an integer of 64 bits; a fraction needs the type "d" in types`, at, text)
	}
	if err != nil {
		return v, fmt.Errorf("%s: %w", at, err)
	}
	return v, nil
}

func array(n *node, at string, letters types) (content.Value, error) {
	values := make([]content.Value, len(n.members))
	for i, m := range n.members {
		var err error
		if values[i], err = value(m.value, pointer(at, strconv.Itoa(i)), letters); err != nil {
			return content.Value{}, err
		}
	}
	return content.List(values...), nil
}
