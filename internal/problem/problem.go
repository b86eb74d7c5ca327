// Package problem describes mistakes in a configuration and their place.
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
	// Detail consists of complete sentences.
	Detail string
}

// Path leads to a value. A string is an attribute's name or an object's key, an int a list index, and a MapKey a map's
// key.
type Path []any

// MapKey is a key of a map in a Path.
type MapKey string

// New returns a problem. args are the arguments of the detail.
func New(path Path, summary, detail string, args ...any) Problem {
	return Problem{Path: path, Summary: summary, Detail: fmt.Sprintf(detail, args...)}
}

// String returns the place and the detail.
func (p Problem) String() string { return p.Path.String() + ": " + p.Detail }

var plainName = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// String spells the path as in pipelines[0].work_queues["orders.created"].max_attempts. A name that is not a word, such
// as an empty one or a sentence, is quoted like a key.
func (p Path) String() string {
	var path strings.Builder
	for _, step := range p {
		if name, isName := step.(string); isName && plainName.MatchString(name) {
			path.WriteString("." + name)
		} else {
			_, _ = fmt.Fprintf(&path, "[%#v]", step) // an index, or a quoted key
		}
	}
	return strings.TrimPrefix(path.String(), ".")
}
