package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// node is a value of JSON whose members have kept their order.
type node struct {
	// scalar is nil, a bool, a string or a [json.Number], unless the node is an object or an array.
	scalar   any
	isObject bool
	isArray  bool
	members  []member
}

// member is also an element of an array, without a name.
type member struct {
	name  string
	value *node
}

func readTree(text []byte) (*node, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return readNode(decoder, "")
}

// readNode reads the next value. The decoder limits its depth.
func readNode(decoder *json.Decoder, at string) (*node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	delimiter, ok := token.(json.Delim)
	if !ok {
		return &node{scalar: token}, nil
	}
	n := &node{isObject: delimiter == '{', isArray: delimiter == '['}
	seen := map[string]bool{}
	for decoder.More() {
		var m member
		if n.isObject {
			name, err := decoder.Token()
			if err != nil {
				return nil, err
			}
			m.name, _ = name.(string)
			if seen[m.name] {
				return nil, fmt.Errorf("duplicate key %s", pointer(at, m.name))
			}
			seen[m.name] = true
		}
		if m.value, err = readNode(decoder, pointer(at, m.name)); err != nil {
			return nil, err
		}
		n.members = append(n.members, m)
	}
	_, err = decoder.Token()
	return n, err
}

// equals ignores the order of an object's members, and how numbers are written.
func (n *node) equals(other *node) bool {
	if n.isObject != other.isObject || n.isArray != other.isArray || len(n.members) != len(other.members) {
		return false
	}
	if !n.isObject && !n.isArray {
		return sameScalar(n.scalar, other.scalar)
	}
	theirs := make(map[string]*node, len(other.members))
	for i, m := range other.members {
		theirs[other.key(i, m)] = m.value
	}
	for i, m := range n.members {
		if their := theirs[n.key(i, m)]; their == nil || !m.value.equals(their) {
			return false
		}
	}
	return true
}

func (n *node) key(i int, m member) string {
	if n.isArray {
		return strconv.Itoa(i)
	}
	return m.name
}

func sameScalar(a, b any) bool {
	if a == b {
		return true
	}
	x, isNumber := a.(json.Number)
	y, areNumbers := b.(json.Number)
	if !isNumber || !areNumbers {
		return false
	}
	n, err := x.Float64()
	m, err2 := y.Float64()
	return errors.Join(err, err2) == nil && n == m
}
