// Package problem describes what is wrong with a configuration, and where.
package problem

import (
	"fmt"
	"regexp"
	"strings"
)

// Problem is a reason why a configuration cannot work, with its place and its remedy.
type Problem struct {
	Path    Path
	Summary string
	// Detail is whole sentences.
	Detail string
}

// Path leads to a value: strings are names of attributes, or of an object's keys, ints are indexes of a
// list, and MapKeys are keys of a map.
type Path []any

// MapKey is a key of a map in a Path.
type MapKey string

// New describes a problem; args are those of the detail.
func New(path Path, summary, detail string, args ...any) Problem {
	return Problem{Path: path, Summary: summary, Detail: fmt.Sprintf(detail, args...)}
}

// String is the place and the detail.
func (p Problem) String() string { return p.Path.String() + ": " + p.Detail }

var plainName = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// String spells the path as in pipelines[0].work_queues["orders.created"].max_attempts. A name that is
// no word, such as the empty one or a whole sentence, is quoted like a key.
func (p Path) String() string {
	var path strings.Builder
	for i, step := range p {
		name, isName := step.(string)
		switch {
		case isName && plainName.MatchString(name) && i > 0:
			path.WriteString("." + name)
		case isName && plainName.MatchString(name):
			path.WriteString(name)
		default:
			_, _ = fmt.Fprintf(&path, bracket(step), step)
		}
	}
	return path.String()
}

// bracket is the format of an index, or of a key.
func bracket(step any) string {
	if _, isIndex := step.(int); isIndex {
		return "[%d]"
	}
	return "[%q]"
}
