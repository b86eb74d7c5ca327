package workerconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
)

// value is a part of a JSON document that knows where it stands.
type value struct {
	path problem.Path
	raw  json.RawMessage
}

// at is a part of the value.
func (v value) at(step any, raw json.RawMessage) value {
	return value{path: append(slices.Clone(v.path), step), raw: raw}
}

// fields are the keys that an object may have.
type fields map[string]func(value) error

// object hands each member to its field. It refuses keys that no field is for, unless they are null.
func (v value) object(known fields) error {
	members, err := v.members()
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		member := v.at(key, members[key])
		if member.isNull() {
			continue
		}
		field, ok := known[key]
		if !ok {
			return fmt.Errorf("%s: unknown key; supported keys: %s", member.path, known)
		}
		if err := field(member); err != nil {
			return err
		}
	}
	return nil
}

func (v value) members() (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := decode(&members, "an object")(v); err != nil {
		return nil, err
	}
	if key, found := v.repeatedKey(); found {
		return nil, fmt.Errorf("%s: duplicate key", v.at(key, nil).path)
	}
	return members, nil
}

// repeatedKey finds a key that an object has more than once. The decoder would silently take the last.
func (v value) repeatedKey() (key string, found bool) {
	decoder := json.NewDecoder(bytes.NewReader(v.raw))
	_, err := decoder.Token() // the brace
	seen := map[json.Token]bool{}
	for err == nil && decoder.More() {
		var token json.Token
		if token, err = decoder.Token(); seen[token] {
			return fmt.Sprint(token), true
		}
		seen[token] = true
		var member json.RawMessage
		if err == nil {
			err = decoder.Decode(&member)
		}
	}
	return "", false
}

func (v value) list() ([]value, error) {
	var elements []json.RawMessage
	if err := decode(&elements, "a list")(v); err != nil {
		return nil, err
	}
	values := make([]value, len(elements))
	for i, raw := range elements {
		values[i] = v.at(i, raw)
	}
	return values, nil
}

func (v value) isNull() bool {
	return bytes.Equal(bytes.TrimSpace(v.raw), []byte("null"))
}

// decode returns a field that reads a value of the kind, which is named in its error.
func decode(target any, kind string) func(value) error {
	return func(v value) error {
		err := json.Unmarshal(v.raw, target)
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			return fmt.Errorf("the configuration is not JSON: %w at byte %d", err, syntax.Offset)
		case err != nil && len(v.path) == 0:
			return fmt.Errorf("the configuration must be %s", kind)
		case err != nil:
			return fmt.Errorf("%s: must be %s", v.path, kind)
		case v.isNull() && len(v.path) == 0:
			return fmt.Errorf("the configuration must be %s, not null", kind)
		case v.isNull():
			return fmt.Errorf("%s: must be %s, not null", v.path, kind)
		}
		return nil
	}
}

func (f fields) String() string {
	return strings.Join(slices.Sorted(maps.Keys(f)), ", ")
}
